/** How the worker tells that its node is alive, and what it does when it cannot. */
import { upsert } from '../../core/store/upsert.ts';
import { nodeHeartbeatMs, nodeLeaseMs, nodes } from '../../model/node.ts';
import type { Node, NodeGateway } from '../../model/node.ts';
import type { WorkerContext } from '../context.ts';
import { LeaseDeadlines } from '../leases/lease-deadlines.ts';
import { NodeReachability } from './node-reachability.ts';
import { stopBackend } from '../lifecycle/stop.ts';
import { untilDue } from '../leases/until-due.ts';

/** A heartbeat that failed is tried again soon, so that one failure does not use up a sixth of the lease. */
const beatAgainAfterMs = 2_000;

/**
 * Tells now, and then regularly until disposed, that this node is alive. Throws if the first time fails.
 *
 * When a node counts as dead, its backends count as lost and their keys as free, whether or not each key was renewed. So the
 * backends that hold a key are stopped before the node's lease ends, too, where other processes share the store.
 */
export async function beginHeartbeat(worker: WorkerContext, gateway: NodeGateway): Promise<AsyncDisposable> {
  const isForAll = worker.settings.gateway !== undefined;
  const place = isForAll ? { gateway } : { ownMachineGateway: gateway };
  const about = { startedAt: await worker.store.now(), ...place };
  const deadlines = new LeaseDeadlines(worker, (kind) => {
    worker.log.error({ kind }, 'The node cannot tell that it is alive, stopping the backends that hold a key');
    for (const run of worker.runs.values()) {
      if (run.backend.key !== undefined) stopBackend(worker, run, kind, 'keyexpired');
    }
  });
  const over = new AbortController();
  const reachability = new NodeReachability(worker, isForAll ? gateway : undefined);
  const beatAndLook = async () => {
    await beat(worker, deadlines, about);
    await reachability.look();
  };
  await beatAndLook();
  const beating = goOnBeating(worker, beatAndLook, over.signal);
  return {
    [Symbol.asyncDispose]: async () => {
      over.abort();
      deadlines[Symbol.dispose]();
      await beating;
    },
  };
}

async function goOnBeating(worker: WorkerContext, beat: () => Promise<void>, signal: AbortSignal): Promise<void> {
  let pauseMs = nodeHeartbeatMs;
  for (;;) {
    await untilDue(worker.machineClock, pauseMs, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      await beat();
      pauseMs = nodeHeartbeatMs;
    } catch (error) {
      pauseMs = beatAgainAfterMs;
      worker.log.warn({ err: error }, 'Heartbeat of the node failed, trying again');
    }
  }
}

async function beat(
  worker: WorkerContext,
  deadlines: LeaseDeadlines,
  about: Pick<Node, 'startedAt' | 'gateway' | 'ownMachineGateway'>,
): Promise<void> {
  const { store, settings, engine } = worker;
  const keep = deadlines.prepare(nodeLeaseMs);
  const now = await store.now();
  const node: Node = {
    id: settings.node,
    cluster: settings.cluster,
    leaseUntil: new Date(now.getTime() + nodeLeaseMs),
    engineVersion: engine.version,
    ...(settings.machine !== undefined && { machine: settings.machine }),
    ...about,
  };
  await upsert(store, nodes, node.id, () => node);
  keep();
}
