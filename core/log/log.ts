import { destination as openDestination, pino } from 'pino';
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

const standardErrorFd = 2;

/** As much is kept of what cannot be written, such as into a file on a full disk; what comes then is lost. */
const maxUnwrittenBytes = 1024 * 1024;

/** Opens the log of this process, as JSON lines. */
export function openLog(level: LogLevel, destination: DestinationStream = standardError()): Log {
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

/**
 * Where logs of a process are collected. A file on a disk that is full, or a pipe that is closed, is no reason to end: what cannot be
 * written is written with one of the next lines. `process.stderr` gives up at the first error, and whatever asks for it makes a pipe
 * non-blocking: then the process would sleep for 100 ms each time its reader is behind.
 */
function standardError(): DestinationStream {
  const stream = openDestination({ dest: standardErrorFd, sync: true, maxLength: maxUnwrittenBytes });
  return stream.on('error', () => {});
}

/**
 * A log that is discarded, for tests.
 *
 * @internal
 */
export function silentLog(): Log {
  return pino({ level: 'silent' });
}
