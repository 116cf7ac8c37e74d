import { destination as openDestination, pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';

/** A structured log: a static message with fields. Bind IDs (`backend`, `node`, `request`) with `child`. */
export type Log = Logger;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Fields that must never be in a log. */
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

/** How much unwritten output is kept, for example while a disk is full. Later lines are lost. */
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
 * The destination of a process's log. A full disk or a closed pipe must not end the process: output that cannot be written is
 * written with a later line. `process.stderr` stops at the first error, and accessing it makes a pipe non-blocking: then the process
 * sleeps for 100 ms each time the pipe's reader is behind.
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
