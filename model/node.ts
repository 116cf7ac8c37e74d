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
  /** Since when it accepts no new backends. Absent: it accepts them. */
  readonly drainedAt?: Date;
  /** The machine and its current boot. */
  readonly machine?: string;
  /** The gateway for other processes of the platform. Absent: all of them are on the same machine. */
  readonly gateway?: NodeGateway;
  /** Without `gateway`: the gateway for processes of the same machine. */
  readonly ownMachineGateway?: NodeGateway;
}

/** The address of a node's gateway, as other processes reach it. */
export interface NodeGateway {
  readonly host: string;
  readonly port: number;
}

export const nodes: Collection<Node, 'byCluster' | 'byLease'> = {
  name: 'nodes',
  indexes: { byCluster: ['cluster'], byLease: ['leaseUntil'] },
};

/** How often a worker sends a heartbeat. */
export const nodeHeartbeatMs = 10_000;

/** Without a heartbeat for this long a node is dead, and its backends are lost. */
export const nodeLeaseMs = 60_000;

/** Whether a node is alive. */
export function isAlive(node: Node, now: Date): boolean {
  return now < node.leaseUntil;
}

/** The node with no new backends from a time on; a node that is drained already stays as it is. */
export function drained(node: Node, at: Date): Node {
  return node.drainedAt ? node : { ...node, drainedAt: at };
}

/** The node that accepts new backends. */
export function undrained(node: Node): Node {
  const { drainedAt: _drainedAt, ...others } = node;
  return node.drainedAt ? others : node;
}

/** The address of a node's gateway, also for a process on its machine. */
export function nearestGateway(node: Node): NodeGateway | undefined {
  return node.gateway ?? node.ownMachineGateway;
}
