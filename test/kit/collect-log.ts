import { openLog } from '../../core/log/log.ts';
import type { Log, LogLevel } from '../../core/log/log.ts';

/** A line of a log, with its fields. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly err?: { readonly message: string };
  readonly [field: string]: unknown;
}

/** A log whose lines a test can read. */
export function collectLog(level: LogLevel = 'info'): { readonly log: Log; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  return { log: openLog(level, { write: (line) => void lines.push(JSON.parse(line) as LogLine) }), lines };
}
