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
  /** For a log: whether it ends after the stored lines. */
  readonly storedOnly?: boolean | undefined;
}

/** The path of a request to a gateway. */
export function backendStreamPath({ about, backend, after, storedOnly = false }: BackendStreamRequest): string {
  const query = [after === undefined ? '' : `after=${after}`, storedOnly ? 'stored' : ''].filter(Boolean).join('&');
  return `/backends/${backend}/${about}${query === '' ? '' : `?${query}`}`;
}

/** Parses the path of a request; `undefined` if it is not valid. */
export function parseBackendStreamPath(path: string): BackendStreamRequest | undefined {
  const [, backend, about, query] = /^\/backends\/([a-z0-9]+)\/(log|metrics)(?:\?(.+))?$/.exec(path) ?? [];
  if (backend === undefined || (about !== 'log' && about !== 'metrics')) return undefined;
  if (query === undefined) return { about, backend };
  const [, after, stored] = /^(?:after=([\d.-]+))?&?(stored)?$/.exec(query) ?? [];
  if (about !== 'log' || (after === undefined && stored === undefined)) return undefined;
  if (after !== undefined && !logPosition.safeParse(after).success) return undefined;
  return { about, backend, ...(after !== undefined && { after }), ...(stored !== undefined && { storedOnly: true }) };
}
