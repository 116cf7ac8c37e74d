import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';

/** A structured log: a static message, with the facts beside it. Bind IDs (`backend`, `node`, `request`) with `child`. */
export type Log = Logger;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** What must never be in a log, wherever a caller puts it. */
const redactedPaths = [
  'token',
  '*.token',
  'authorization',
  '*.authorization',
  'password',
  '*.password',
  'cookie',
  '*.cookie',
];

/** Opens the log of this process, as JSON lines. */
export function openLog(level: LogLevel, destination: DestinationStream = process.stderr): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: redactedPaths, censor: '[redacted]' },
    },
    destination,
  );
}

/** A log that nobody reads, for tests. */
export function silentLog(): Log {
  return pino({ level: 'silent' });
}
