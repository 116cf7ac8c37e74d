/** Nodes: machines with a Docker Engine and one worker. */
import type { Collection } from '../core/store/store.ts';

export interface Node {
  /** A name that stays the same across restarts. */
  readonly id: string;
  readonly cluster: string;
  /** Until when the node counts as alive without another heartbeat. */
  readonly leaseUntil: Date;
  readonly startedAt: Date;
  readonly engineVersion: string;
  /** Which machine it is, since when that runs. */
  readonly machine?: string;
  /** Where other processes of the platform reach what runs here. Absent: whoever wants to is on the same machine. */
  readonly gateway?: NodeGateway;
  /** Without `gateway`: where processes of the same machine reach its gateway. */
  readonly ownMachineGateway?: NodeGateway;
}

/** Where a node's gateway listens, as others reach it. */
export interface NodeGateway {
  readonly host: string;
  readonly port: number;
}

export const nodes: Collection<Node, 'byCluster' | 'byLease'> = {
  name: 'nodes',
  indexes: { byCluster: ['cluster'], byLease: ['leaseUntil'] },
};

/** How often a worker tells that its node is alive. */
export const nodeHeartbeatMs = 10_000;

/** Without a heartbeat for this long a node is dead, and its backends are lost. */
export const nodeLeaseMs = 60_000;

/** Whether a node is alive. */
export function isAlive(node: Node, now: Date): boolean {
  return now < node.leaseUntil;
}

/** Where a node's gateway is, for whoever may be on its machine. */
export function nearestGateway(node: Node): NodeGateway | undefined {
  return node.gateway ?? node.ownMachineGateway;
}
