/** The requests of an API process to the gateway of a node: logs and metrics of its backends. Answers are lines of JSON. */
import { z } from 'zod';

/** One line of a backend's log, or a piece of a very long one. */
export const logRecord = z.strictObject({
  /** Its position in the log, see `logPosition`. */
  at: z.string(),
  line: z.string(),
});

export type LogRecord = z.infer<typeof logRecord>;

/**
 * A position in a backend's log, the same whenever the log is read: the timestamp of the line from the engine (seconds and
 * nanoseconds), and a counter of the lines since then. These strings sort in the order of the lines.
 */
export const logPosition = z.string().regex(/^\d{10}\.\d{9}-\d{8}$/);

/** A line longer than this is split. */
export const maxLineBytes = 64 * 1024;

/** A request for the log or the metrics of a backend. */
export interface BackendStreamRequest {
  readonly about: 'log' | 'metrics';
  readonly backend: string;
  /** For a log: only lines after this position. */
  readonly after?: string | undefined;
}

/** The path of a request to a gateway. */
export function backendStreamPath({ about, backend, after }: BackendStreamRequest): string {
  return `/backends/${backend}/${about}${after === undefined ? '' : `?after=${after}`}`;
}

/** Parses the path of a request; `undefined` if it is not valid. */
export function parseBackendStreamPath(path: string): BackendStreamRequest | undefined {
  const [, backend, about, after] = /^\/backends\/([a-z0-9]+)\/(log|metrics)(?:\?after=([\d.-]+))?$/.exec(path) ?? [];
  if (backend === undefined || (about !== 'log' && about !== 'metrics')) return undefined;
  if (after === undefined) return { about, backend };
  return about === 'log' && logPosition.safeParse(after).success ? { about, backend, after } : undefined;
}
