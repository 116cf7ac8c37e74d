/** What commands beside `serve` have in common: what they are handed, and how they tell what they are told. */
import type { TaskRequest } from './task-client.ts';

export interface CommandRequest extends Omit<TaskRequest, 'name' | 'query'> {
  /** Whether to write the events themselves, as lines of JSON. */
  readonly json: boolean;
  readonly write: (line: string) => void;
}

/** Writes a line that was told: as it is, or in a sentence for people. */
export function tell({ json, write }: CommandRequest, line: unknown, sentence: string | undefined): void {
  if (json) write(JSON.stringify(line));
  else write(sentence ?? messageOf(line));
}

/** What a process says that failed. */
function messageOf(line: unknown): string {
  const isError = typeof line === 'object' && line !== null && 'message' in line;
  return isError ? String(line.message) : `Not understood: ${JSON.stringify(line)}`;
}
