/** Reads the log of a backend: from its container while that exists, afterwards from a file of this node. */
import type { LogRecord } from '../../contract/backend-streams.ts';
import type { WorkerContext } from '../context.ts';
import { isEngineError } from '../docker/engine-error.ts';
import { LogLines, LogReplays } from './log-lines.ts';

export interface LogReading {
  readonly backend: string;
  /** The position after which to begin. Default: the oldest line that is kept. */
  readonly after?: string | undefined;
  /** Whether the reading ends after the stored lines. Default: it follows the container. */
  readonly storedOnly?: boolean | undefined;
  /** Ends the reading, which throws the reason. */
  readonly signal: AbortSignal;
}

/** How much earlier a line may have begun than the line before it: both streams of a container write at once. */
const disorderSeconds = 10;

/** The pause after the engine ended a log early: it loses track of a container that writes much, or is removing it. */
const retryAfterMs = 200;

/**
 * Yields the stored part of a backend's log, then follows its container until that exits. The log of an unknown backend is empty. The
 * first batch may be empty: it comes as soon as the log is found. Throws an `EngineError`.
 */
export async function* readBackendLog(
  worker: Pick<WorkerContext, 'engine' | 'clock' | 'keptLogs'>,
  { backend, after, storedOnly, signal }: LogReading,
): AsyncGenerator<LogRecord[], void, void> {
  let last = after;
  for (;;) {
    const state = await worker.engine.containers.inspect(worker.engine.containerName(backend));
    // Read after the container was inspected: a container is removed only after its log was kept.
    const kept = await worker.keptLogs.read(backend, last);
    if (kept) {
      yield* kept;
      return;
    }
    if (!state) return;
    const hasEnded = state.phase !== 'running';
    try {
      for await (const records of readContainerLog(worker, { backend, after: last, storedOnly, signal }, hasEnded)) {
        last = records.at(-1)?.at ?? last;
        yield records;
      }
      // If the container exited only since its inspection, the end of its log may be missing: read again.
      if (hasEnded || storedOnly) return;
    } catch (error) {
      if (!isEngineError(error, 'no-container')) throw error;
    }
    await worker.clock.sleep(retryAfterMs, signal);
  }
}

/**
 * Yields the engine's log of a container, then follows it unless only stored lines are wanted.
 *
 * @param hasEnded - whether the container has exited: its last output is then a line, even without a newline
 */
export async function* readContainerLog(
  { engine }: Pick<WorkerContext, 'engine'>,
  { backend, after, storedOnly = false, signal }: LogReading,
  hasEnded: boolean,
): AsyncGenerator<LogRecord[], void, void> {
  const lines = new LogLines();
  const replays = new LogReplays();
  const isNew = ({ at }: LogRecord) => after === undefined || at > after;
  const reading = { since: after && timeBefore(after), follow: !storedOnly };
  for await (const entries of engine.readLog(backend, reading, signal)) {
    yield lines.add(hasEnded ? entries : entries.filter((entry) => replays.isNew(entry))).filter(isNew);
  }
  if (hasEnded) yield lines.end().filter(isNew);
}

function timeBefore(position: string): string {
  const [seconds = '0', nanoseconds = ''] = position.split(/[.-]/);
  return `${Math.max(Number(seconds) - disorderSeconds, 0)}.${nanoseconds}`;
}
