/**
 * Ends backends that nobody else can end: those that no node took in time, and those whose node has fallen silent. Every API
 * process may do this at the same time; statuses only move forward.
 */
import { backendChanged } from '../contract/messages.ts';
import { backends, end } from '../model/backend.ts';
import type { Backend, Ending } from '../model/backend.ts';
import { isAlive, nodeLeaseMs, nodes } from '../model/node.ts';
import type { ApiDependencies } from './room.ts';

/** A node's death is noticed this much after its lease ended, at most. */
const passEveryMs = 5_000;

type CaretakerDependencies = Pick<ApiDependencies, 'store' | 'bus' | 'clock' | 'log' | 'rules'>;

/** Starts the passes. Disposing waits for the one that runs. */
export function startCaretaker(deps: CaretakerDependencies): AsyncDisposable {
  const startedAtMs = deps.clock.now().getTime();
  let pass: Promise<void> | undefined;
  const timer = deps.clock.every(passEveryMs, () => {
    // A platform that was down as a whole comes back in some order: nodes get one lease's time to show that they live.
    const nodesHadTheirChance = deps.clock.now().getTime() - startedAtMs >= nodeLeaseMs;
    pass ??= takeCare(deps, nodesHadTheirChance)
      .catch((error: unknown) => deps.log.warn({ err: error }, 'Caretaker pass failed'))
      .finally(() => (pass = undefined));
  });
  return {
    [Symbol.asyncDispose]: async () => {
      timer[Symbol.dispose]();
      await pass;
    },
  };
}

/** One pass over what nobody else looks after. */
export async function takeCare(deps: CaretakerDependencies, nodesHadTheirChance: boolean): Promise<void> {
  await endUnplaced(deps);
  if (nodesHadTheirChance) await endLost(deps);
}

async function endUnplaced(deps: CaretakerDependencies): Promise<void> {
  const now = await deps.store.now();
  const oldest = new Date(now.getTime() - deps.rules.schedulingTimeoutSeconds * 1000);
  const ending: Ending = {
    kind: 'hard',
    reason: 'startuptimeout',
    exitCode: null,
    failure: 'No node had room for it in time',
  };
  for (const backend of await deps.store.find(backends, { index: 'waiting', equals: { live: true, node: null } })) {
    if (backend.createdAt > oldest) continue;
    await endBackend(deps, backend, (current) => (current.node === undefined ? end(current, ending, now) : current));
  }
}

async function endLost(deps: CaretakerDependencies): Promise<void> {
  const now = await deps.store.now();
  for (const node of await deps.store.find(nodes, { index: 'byCluster' })) {
    if (isAlive(node, now)) continue;
    for (const backend of await deps.store.find(backends, { index: 'byNode', equals: { node: node.id, live: true } })) {
      await endBackend(deps, backend, (current) => end(current, { kind: null, reason: 'lost', exitCode: null }, now));
    }
  }
}

async function endBackend(
  deps: CaretakerDependencies,
  { id }: Backend,
  change: (current: Backend) => Backend,
): Promise<void> {
  const ended = await deps.store.update(backends, id, change);
  if (!ended || ended.live) return;
  deps.log.warn({ backend: id, reason: ended.history.at(-1)?.terminationReason }, 'Backend ended by the caretaker');
  await deps.bus.publish(backendChanged, { backend: id, status: ended.status });
}
