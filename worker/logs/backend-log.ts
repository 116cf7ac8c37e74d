/** The log of a backend, wherever it is: with its container while that is there, from then on in a file of this node. */
import type { LogRecord } from '../../contract/backend-streams.ts';
import type { WorkerContext } from '../context.ts';
import { isEngineError } from '../docker/engine-error.ts';
import { LogLines } from './log-lines.ts';
import { LogReplays } from './log-replays.ts';

export interface LogReading {
  readonly backend: string;
  /** The place after which to begin. Default: with the oldest line that is kept. */
  readonly after?: string | undefined;
  /** Ends the reading, which then throws. */
  readonly signal: AbortSignal;
}

/** Both streams of a container write at once: how much earlier a line may have begun than one that is before it. */
const disorderSeconds = 10;

/** The engine has lost track of a container, which it does where much is written, or is just removing it. */
const lookAgainAfterMs = 200;

/**
 * What is kept of a backend's log, then what its container writes, until that has ended. What is gone, or never was, is empty. The
 * first of what comes may be empty: it is there as soon as anybody knows of the log. Throws an `EngineError`.
 */
export async function* readBackendLog(
  worker: Pick<WorkerContext, 'engine' | 'clock' | 'keptLogs'>,
  { backend, after, signal }: LogReading,
): AsyncGenerator<LogRecord[], void, void> {
  let last = after;
  for (;;) {
    const state = await worker.engine.containers.inspect(worker.engine.containerName(backend));
    // Looked for after the container, which goes only when its log is kept.
    const kept = await worker.keptLogs.read(backend, last);
    if (kept) {
      yield* kept;
      return;
    }
    if (!state) return;
    const hasEnded = state.phase !== 'running';
    try {
      for await (const records of readContainerLog(worker, { backend, after: last, signal }, hasEnded)) {
        last = records.at(-1)?.at ?? last;
        yield records;
      }
      // Of one that has ended since, the rest may have been missed: it is looked for once more.
      if (hasEnded) return;
    } catch (error) {
      if (!isEngineError(error, 'no-container')) throw error;
    }
    await worker.clock.sleep(lookAgainAfterMs, signal);
  }
}

/**
 * What the engine has kept of a container's log, and what follows.
 *
 * @param hasEnded - whether the container has: then what it wrote last is a line, though no newline ends it
 */
export async function* readContainerLog(
  { engine }: Pick<WorkerContext, 'engine'>,
  { backend, after, signal }: LogReading,
  hasEnded: boolean,
): AsyncGenerator<LogRecord[], void, void> {
  const lines = new LogLines();
  const replays = new LogReplays();
  const isNew = ({ at }: LogRecord) => after === undefined || at > after;
  for await (const entries of engine.logs.follow(backend, after && timeBefore(after), signal)) {
    yield lines.take(hasEnded ? entries : entries.filter((entry) => replays.isNew(entry))).filter(isNew);
  }
  if (hasEnded) yield lines.end().filter(isNew);
}

function timeBefore(position: string): string {
  const [seconds = '0', nanoseconds = ''] = position.split(/[.-]/);
  return `${Math.max(Number(seconds) - disorderSeconds, 0)}.${nanoseconds}`;
}
