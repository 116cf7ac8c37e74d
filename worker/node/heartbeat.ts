/** Renews the lease of this node, and stops backends with a key when that fails. */
import { upsert } from '../../core/store/upsert.ts';
import { nodeHeartbeatMs, nodeLeaseMs, nodes } from '../../model/node.ts';
import type { Node, NodeGateway } from '../../model/node.ts';
import { settledOnClose } from '../close.ts';
import type { WorkerContext } from '../context.ts';
import { LeaseDeadlines, untilDue } from '../leases/lease-deadlines.ts';
import { NodeNameError } from './node-identity.ts';
import { NodeReachability } from './node-reachability.ts';
import { stopBackend } from '../lifecycle/stop.ts';

/** The pause after a failed heartbeat, so that a failure does not use up a sixth of the lease. */
const retryAfterMs = 2_000;

/** The heartbeats of this node. */
export interface Heartbeats extends AsyncDisposable {
  /** Another worker has written a heartbeat under this node's name since the last one of this worker. */
  readonly problem: NodeNameError | undefined;
}

/**
 * Writes a heartbeat of this node now, and then regularly until disposed. Throws if the first heartbeat fails.
 *
 * When a node counts as dead, its backends count as lost and their keys as free, even if the keys were renewed. So if other
 * processes share the store, the backends with a key are stopped before the node's lease ends, too.
 */
export async function beginHeartbeat(worker: WorkerContext, gateway: NodeGateway): Promise<Heartbeats> {
  const isPublic = worker.settings.gateway !== undefined;
  const access = isPublic ? { gateway } : { ownMachineGateway: gateway };
  const about = { startedAt: await worker.store.now(), ...access };
  const deadlines = new LeaseDeadlines(worker, (kind) => {
    worker.log.error({ kind }, 'Cannot renew the lease of the node, stopping the backends that hold a key');
    for (const run of worker.runs.values()) {
      if (run.backend.key !== undefined) stopBackend(worker, run, kind, 'keyexpired');
    }
  });
  const closing = new AbortController();
  const reachability = new NodeReachability(worker, isPublic ? gateway : undefined);
  let problem: NodeNameError | undefined;
  const writeAndCheck = async () => {
    const before = await writeHeartbeat(worker, deadlines, about);
    problem = isOfOther(before, about) ? new NodeNameError(worker.settings.node) : undefined;
    if (problem)
      worker.log.error({ err: problem }, 'Two workers use the name of this node, and stop the backends of each other');
    await reachability.check();
  };
  await writeHeartbeat(worker, deadlines, about);
  await reachability.check();
  const writing = writeHeartbeats(worker, writeAndCheck, closing.signal);
  return {
    get problem() {
      return problem;
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      deadlines[Symbol.dispose]();
      await settledOnClose(writing);
    },
  };
}

async function writeHeartbeats(worker: WorkerContext, write: () => Promise<void>, signal: AbortSignal): Promise<void> {
  let pauseMs = nodeHeartbeatMs;
  for (;;) {
    await untilDue(worker.machineClock, pauseMs, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      await write();
      pauseMs = nodeHeartbeatMs;
    } catch (error) {
      if (signal.aborted) return;
      pauseMs = retryAfterMs;
      worker.log.warn({ err: error }, 'Heartbeat of the node failed, trying again');
    }
  }
}

/** Whether a heartbeat that was found instead of this worker's own is that of another worker. */
function isOfOther(found: Node | undefined, { startedAt }: Pick<Node, 'startedAt'>): boolean {
  return found !== undefined && found.startedAt.getTime() !== startedAt.getTime();
}

/** Writes one heartbeat. Returns the one before it. */
async function writeHeartbeat(
  worker: WorkerContext,
  deadlines: LeaseDeadlines,
  about: Pick<Node, 'startedAt' | 'gateway' | 'ownMachineGateway'>,
): Promise<Node | undefined> {
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
  let before: Node | undefined;
  const written = await upsert(store, nodes, node.id, (current) => {
    before = current;
    // The drain by an administrator outlasts the process.
    return current?.drainedAt ? { ...node, drainedAt: current.drainedAt } : node;
  });
  worker.drain.update(written);
  keep();
  return before;
}
