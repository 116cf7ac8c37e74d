/** The event streams of a backend: statuses, log and usage; and waiting for a status. */
import type { BackendStatus, Metrics } from './contract.ts';
import { BerthError } from './errors.ts';
import { followEvents } from './streams.ts';
import type { StreamOptions } from './streams.ts';
import { newTimeLimit } from './time.ts';
import type { Transport } from './transport.ts';

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to wait in total. Default: until the platform ends the backend. */
  readonly timeoutMs?: number | undefined;
}

/** A line of a backend's log. */
export interface LogLine {
  /** Its position in the log: the option `after` of a later `logs` continues there. */
  readonly id: string;
  readonly line: string;
}

export interface LogOptions extends StreamOptions {
  /** Whether new lines follow the stored ones. Default: true. */
  readonly follow?: boolean | undefined;
}

export async function* statusesOf(
  transport: Transport,
  backend: string,
  { signal, after }: StreamOptions = {},
): AsyncGenerator<BackendStatus, void, undefined> {
  let last: BackendStatus | undefined;
  const isComplete = async () => last?.status === 'terminated';
  const input = { path: { backend_id: backend } };
  for await (const { data } of followEvents(transport, {
    name: 'backendStatusStream',
    input,
    isComplete,
    signal,
    after,
  })) {
    last = JSON.parse(data) as BackendStatus;
    yield last;
  }
}

export async function* logOf(
  transport: Transport,
  backend: string,
  { signal, after, follow = true }: LogOptions = {},
): AsyncGenerator<LogLine, void, undefined> {
  const isComplete = follow ? endOfStream(transport, backend, signal) : async () => true;
  const input = { path: { backend_id: backend }, query: follow ? {} : { follow: 'false' as const } };
  for await (const { id = '', data } of followEvents(transport, {
    name: 'backendLogs',
    input,
    isComplete,
    signal,
    after,
  })) {
    yield { id, line: data };
  }
}

export async function* metricsOf(
  transport: Transport,
  backend: string,
  { signal, after }: StreamOptions = {},
): AsyncGenerator<Metrics, void, undefined> {
  const isComplete = endOfStream(transport, backend, signal);
  const input = { path: { backend_id: backend } };
  for await (const { data } of followEvents(transport, { name: 'backendMetrics', input, isComplete, signal, after })) {
    yield JSON.parse(data) as Metrics;
  }
}

/** Waits until a backend is ready. Rejects with `BackendEnded` when it ends before, and with `TimedOut`. */
export async function untilReady(transport: Transport, backend: string, options: WaitOptions): Promise<BackendStatus> {
  return await waitFor(transport, backend, options, (status) => {
    if (status.status === 'ready') return true;
    if (isEnding(status)) throw endedError(backend, status);
    return false;
  });
}

export async function untilTerminated(
  transport: Transport,
  backend: string,
  options: WaitOptions,
): Promise<BackendStatus> {
  return await waitFor(transport, backend, options, ({ status }) => status === 'terminated');
}

// oxlint-disable-next-line max-params -- only the two functions above call it
async function waitFor(
  transport: Transport,
  backend: string,
  { signal, timeoutMs }: WaitOptions,
  isReached: (status: BackendStatus) => boolean,
): Promise<BackendStatus> {
  const limit = newTimeLimit(`The backend ${backend} has not reached the status within ${timeoutMs} ms`, signal);
  if (timeoutMs !== undefined) limit.restart(timeoutMs);
  try {
    for await (const status of statusesOf(transport, backend, { signal: limit.signal })) {
      if (isReached(status)) return status;
    }
    throw new BerthError('UnexpectedResponse', `The statuses of the backend ${backend} ended early`);
  } finally {
    limit.end();
  }
}

/**
 * Returns whether a stream of logs or metrics is complete when the server has ended it. A server that is being stopped also ends streams,
 * even of a backend that has ended. So a stream is complete if it was opened after the backend had ended, and contained no event.
 */
function endOfStream(
  transport: Transport,
  backend: string,
  signal: AbortSignal | undefined,
): (hadEvents: boolean) => Promise<boolean> {
  let hasEnded = false;
  return async (hadEvents) => {
    if (hasEnded && !hadEvents) return true;
    hasEnded ||= await transport.json('backendStatus', { path: { backend_id: backend } }, { signal }).then(
      ({ status }) => status === 'terminated',
      (error: unknown) => {
        if (error instanceof BerthError && error.code === 'BackendNotFound') return true;
        throw error;
      },
    );
    return false;
  };
}

function isEnding({ status }: BackendStatus): boolean {
  return status === 'terminating' || status === 'hard-terminating' || status === 'terminated';
}

function endedError(backend: string, { termination_reason: reason, problem }: BackendStatus): BerthError {
  const why = reason ? ` (${reason})` : '';
  return new BerthError(
    'BackendEnded',
    problem === undefined
      ? `The backend ${backend} ended before it was ready${why}`
      : `The backend ${backend} ended${why}: ${problem}`,
  );
}
