/** Follows the engine's events to notice that containers have exited. */
import { withTimeout } from '../../core/async/with-timeout.ts';
import type { WorkerContext } from '../context.ts';
import { EngineError } from '../docker/engine-error.ts';
import type { ContainerEvent } from '../docker/events.ts';
import { checkContainer, outOfMemoryFailure } from '../lifecycle/container-exit.ts';
import { checkExited } from './reconcile.ts';

/** A healthy engine answers within milliseconds. */
const openWithinMs = 10_000;

/**
 * Follows the engine's events until disposed. Resolves when the stream is open for the first time. Throws `unavailable` if the engine
 * does not open it in time.
 */
export async function beginWatching(worker: WorkerContext): Promise<AsyncDisposable> {
  const opened = Promise.withResolvers<void>();
  const closing = new AbortController();
  const following = worker.engine.followEvents(
    {
      onOpen: () => {
        opened.resolve();
        // Containers that exited before the stream was open.
        checkExited(worker).catch((error: unknown) => logFailure(worker, error));
      },
      onEvent: (event) => {
        onEvent(worker, event).catch((error: unknown) => logFailure(worker, error));
      },
    },
    closing.signal,
  );
  await using watching = new AsyncDisposableStack();
  watching.defer(async () => {
    closing.abort();
    await following;
  });
  const limit = { clock: worker.machineClock, ms: openWithinMs };
  await withTimeout(limit, async () => await opened.promise).catch((error: unknown) => {
    throw new EngineError('unavailable', 'The Docker Engine does not send its events', { cause: error });
  });
  return watching.move();
}

async function onEvent(worker: WorkerContext, event: ContainerEvent): Promise<void> {
  const run = worker.runs.get(event.backend);
  if (!run || run.container?.id !== event.container) return;
  if (event.kind === 'exited') {
    await checkContainer(worker, run, event.exitCode ?? null);
    return;
  }
  // A backend that exceeded its limit ends, whichever process the kernel killed.
  run.fail(outOfMemoryFailure(worker, run));
  worker.log.warn({ backend: run.id }, 'Backend exceeded its memory limit');
  await worker.engine.containers.signal(event.container, 'SIGKILL');
}

function logFailure(worker: WorkerContext, error: unknown): void {
  if (!worker.closing.aborted) worker.log.warn({ err: error }, 'Cannot inspect containers, the next pass tries again');
}
