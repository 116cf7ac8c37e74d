import { nodeQueue, terminateJob } from '../contract/jobs.ts';
import type { TerminationKind } from '../contract/statuses.ts';
import { rank, requestStop } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { Refusal } from '../model/refusal.ts';
import { endBackend } from './end-backend.ts';
import { notify } from './notify.ts';
import type { Api } from './room.ts';

/** How long an answer waits to be able to say that the signal was sent; the wish stands in the store either way. */
const signalWaitMs = 2_000;

/**
 * Asks that a backend ends, and waits a moment until its node has begun to end it. Throws `BackendNotFound`,
 * `BackendNotRunning`.
 */
export async function terminate(api: Api, id: string, kind: TerminationKind, signal: AbortSignal): Promise<void> {
  const now = await api.store.now();
  const change = (current: Backend) => requestStop(current, kind, 'external', now);
  const backend = await endBackend(api, id, { endedBy: 'request', change });
  if (!backend) throw new Refusal('BackendNotFound', `There is no backend "${id}"`);
  if (!backend.live || backend.node === undefined) return;
  await notify(api, nodeQueue(backend.node), terminateJob, { backend: id, priority: 'high' });
  const begun = rank(kind === 'soft' ? 'terminating' : 'hard-terminating');
  const patience = new AbortController();
  using _timer = api.clock.after(signalWaitMs, () => patience.abort());
  for await (const { status } of api.watch.follow(id, AbortSignal.any([signal, patience.signal]))) {
    if (rank(status) >= begun) return;
  }
}
