/** What the commands other than `serve` share: their options, and how they write the events of a task. */
import type { TaskRequest } from './task-client.ts';

export interface CommandRequest extends Omit<TaskRequest, 'name' | 'query'> {
  /** Whether to write the events themselves, as lines of JSON. */
  readonly json: boolean;
  readonly write: (line: string) => void;
}

/** Writes one event of a task: as JSON, or as a sentence for people. */
export function writeEvent({ json, write }: CommandRequest, line: unknown, sentence: string | undefined): void {
  if (json) write(JSON.stringify(line));
  else write(sentence ?? messageOf(line));
}

/** The error message of a process that failed. */
function messageOf(line: unknown): string {
  const isError = typeof line === 'object' && line !== null && 'message' in line;
  return isError ? String(line.message) : `Unknown event: ${JSON.stringify(line)}`;
}
