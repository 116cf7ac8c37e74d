import { pullProgressMs, pullProgressed } from '../../contract/messages.ts';
import type { PullProgress } from '../../contract/messages.ts';
import { TimeoutError, withTimeout } from '../../core/async/with-timeout.ts';
import { serviceId } from '../../model/service.ts';
import type { WorkerContext } from '../context.ts';
import { EngineError, isEngineError } from '../docker/engine-error.ts';
import { imageReference, newPullToken } from '../images/pulls.ts';
import type { Run } from './run.ts';

/** A backend cannot start. The message is shown to its owner: one sentence without secrets. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
}

/** The pause before a call to the engine is repeated. It is probably restarting. */
export const engineAwayPauseMs = 500;

/** Pulls a backend's image. Throws a `StartFailure` if that fails or exceeds its time limit. */
export async function pullImage(worker: WorkerContext, run: Run): Promise<void> {
  const { clock, settings } = worker;
  const reference = imageReference(settings.registryHost, run.backend);
  const startedAt = clock.now();
  const limit = { clock, ms: settings.pullTimeoutSeconds * 1000, signal: run.startUpSignal };
  try {
    using _pause = run.pauseStartTime(clock);
    await withTimeout(limit, async (signal) => await pullUntilDone(worker, run, { reference, signal }));
    const ms = Math.max(clock.now().getTime() - startedAt.getTime(), 0);
    worker.log.info({ backend: run.id, reference, ms }, 'Image pulled');
  } catch (error) {
    run.startUpSignal.throwIfAborted();
    throw new StartFailure(failureOf(error, settings.pullTimeoutSeconds), { cause: error });
  }
}

/** Pulls again if the engine restarts meanwhile: that does not end the backend. */
async function pullUntilDone(
  worker: WorkerContext,
  run: Run,
  { reference, signal }: { reference: string; signal: AbortSignal },
): Promise<void> {
  const { account, service } = run.backend;
  const newToken = () => newPullToken(worker, serviceId(account, service));
  const onProgress = progressPublisher(worker, run.id);
  for (;;) {
    try {
      await worker.pulls.pull(reference, newToken, { signal, onProgress });
      return;
    } catch (error) {
      if (signal.aborted || !isEngineError(error, 'unavailable')) throw error;
      worker.log.warn({ err: error, backend: run.id }, 'The engine does not answer, pulling again');
    }
    await worker.clock.sleep(engineAwayPauseMs, signal);
  }
}

/** Publishes the progress of a backend's pull, at most every `pullProgressMs` and when it is complete. */
function progressPublisher({ bus, clock, log }: WorkerContext, backend: string): (progress: PullProgress) => void {
  let publishedAtMs = -Infinity;
  return (progress) => {
    const nowMs = clock.now().getTime();
    const isComplete = progress.layersDone === progress.layers;
    if (!isComplete && Math.abs(nowMs - publishedAtMs) < pullProgressMs) return;
    publishedAtMs = nowMs;
    bus.publish(pullProgressed, { backend, progress }).catch((error: unknown) => {
      log.warn({ err: error, backend }, 'Progress of a pull not published');
    });
  };
}

function failureOf(error: unknown, limitSeconds: number): string {
  if (error instanceof TimeoutError) return `The image could not be pulled within ${limitSeconds} seconds`;
  const why = error instanceof EngineError ? error.message : 'an error of the platform';
  return `The image could not be pulled: ${why}`;
}
