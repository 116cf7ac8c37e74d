/** What an API process asks the gateway of a node for: what its backends say and use. Answers are lines of JSON. */
import { z } from 'zod';

/** One line of a backend's log, or a piece of a very long one. */
export const logRecord = z.strictObject({
  /** Its place in the log, see `logPosition`. */
  at: z.string(),
  line: z.string(),
});

export type LogRecord = z.infer<typeof logRecord>;

/**
 * A place in a backend's log, the same whenever it is read: the time that the engine noted (seconds and nanoseconds), and which
 * of the lines since then it is. Texts of this form are in the order of their places.
 */
export const logPosition = z.string().regex(/^\d{10}\.\d{9}-\d{8}$/);

/** A line longer than this is split. */
export const maxLineBytes = 64 * 1024;

/** What is asked for about a backend. */
export interface NodeQuestion {
  readonly about: 'log' | 'metrics';
  readonly backend: string;
  /** Of a log: what comes after this place. */
  readonly after?: string | undefined;
}

/** The path under which a gateway answers a question. */
export function nodePath({ about, backend, after }: NodeQuestion): string {
  return `/backends/${backend}/${about}${after === undefined ? '' : `?after=${after}`}`;
}

/** The question behind a path, if it is one. */
export function nodeQuestion(path: string): NodeQuestion | undefined {
  const [, backend, about, after] = /^\/backends\/([a-z0-9]+)\/(log|metrics)(?:\?after=([\d.-]+))?$/.exec(path) ?? [];
  if (backend === undefined || (about !== 'log' && about !== 'metrics')) return undefined;
  if (after === undefined) return { about, backend };
  return about === 'log' && logPosition.safeParse(after).success ? { about, backend, after } : undefined;
}
