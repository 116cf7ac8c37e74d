/** Backends and their transitions. Statuses only move forward; only this file has their order. */
import type { UrlForm } from '../contract/connect.ts';
import { backendStatuses } from '../contract/statuses.ts';
import type { BackendStatus, TerminationKind, TerminationReason } from '../contract/statuses.ts';
import type { Readiness } from '../contract/readiness.ts';
import type { Egress } from '../contract/egress.ts';
import type { SecurityProfile } from '../contract/security-profile.ts';
import type { OlderGeneration } from '../contract/generations.ts';
import type { Collection } from '../core/store/store.ts';
import { ApiError } from './api-error.ts';

/** One step in a backend's history. */
export interface StatusEntry {
  readonly status: BackendStatus;
  readonly time: Date;
  /** On `terminating`, `hard-terminating` and `terminated`; `null` if it was not stopped. */
  readonly terminationKind?: TerminationKind | null;
  readonly terminationReason?: TerminationReason | null;
  /** On `terminated`: the status before the termination began. */
  readonly lastStatus?: BackendStatus;
  /** On `terminated`: the container's exit code, `null` if there was no container or its exit was not observed. */
  readonly exitCode?: number | null;
  /** On `terminated`: what went wrong, as text for users. */
  readonly failure?: string;
}

/** A request to stop a backend. The backend's node applies it. */
export interface StopRequest {
  readonly kind: TerminationKind;
  readonly reason: TerminationReason;
  readonly requestedAt: Date;
}

/** Limits of one container; absent means the platform's default. */
export interface BackendLimits {
  readonly memoryBytes?: number;
  /** Share of each CPU period, in percent of one core. */
  readonly cpuPeriodPercent?: number;
  readonly cpuPeriodMicroseconds?: number;
  readonly cpuTimeSeconds?: number;
}

/** Where the proxy reaches a backend. */
export interface BackendAddress {
  readonly host: string;
  readonly port: number;
  /** The port on which its program listens, if connections to `port` are forwarded to it within the container. */
  readonly targetPort?: number;
}

/** One container, from `scheduled` to `terminated`. */
export interface Backend {
  readonly id: string;
  readonly account: string;
  /** The service's name within its account. */
  readonly service: string;
  readonly environment: string;
  readonly cluster: string;
  readonly imageDigest: string;
  readonly key?: string;
  readonly fencingToken?: number;
  /** The previous holder of the key, which is still ending: this backend starts when it has ended. */
  readonly waitsFor?: string;
  /** Variables of the container. Deleted when the backend has ended. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables that are encrypted here (`container-env.ts`), and override the others. Forgotten when the backend has ended. */
  readonly sealedEnv?: string;
  readonly limits: BackendLimits;
  /** `true`: a folder for the key; a text: a folder with that name, shared within the service. */
  readonly mount?: true | string;
  readonly maxIdleSeconds: number;
  readonly lifetimeLimitSeconds?: number;
  /** The generation of the service API through which it was spawned. Absent: v2. */
  readonly generation?: OlderGeneration;
  /** The form of the URL that its spawn returned, if that was through an older generation. Absent: `path`. */
  readonly urlForm?: UrlForm;
  /** The hash of the bearer token that each request to it needs. Absent: requests need none. */
  readonly bearerHash?: string;
  /** The port on which the container listens, by the service or the request. Absent: the image decides (`expectedPorts`). */
  readonly port?: number;
  /** When it is ready. Absent: as soon as its port is open. */
  readonly readiness?: Readiness;
  /** What its container may do. Absent: `default`. */
  readonly securityProfile?: SecurityProfile;
  /** The networks that it may open connections to. Absent: `open`. */
  readonly egress?: Egress;
  readonly createdAt: Date;
  readonly status: BackendStatus;
  /** Whether it has not ended. */
  readonly live: boolean;
  readonly history: readonly StatusEntry[];
  /** The node that runs it, once a node has claimed it. */
  readonly node?: string;
  /** While it waits: why it is not ready, if known, as text for users that continues "The container". */
  readonly startProblem?: string;
  /** Where the proxy reaches it, from `ready` on. */
  readonly address?: BackendAddress;
  readonly readyAt?: Date;
  /** When a connection to it was last issued, not written more often than `touch` allows. `sweepIdle` compares it. */
  readonly touchedAt?: Date;
  /** When it ended. Its history is kept for a while after this time. */
  readonly endedAt?: Date;
  readonly stop?: StopRequest;
  /** The most memory that was seen in use, without reclaimable page cache. */
  readonly peakMemoryBytes?: number;
}

export const backends: Collection<Backend, 'byService' | 'byAccount' | 'byNode' | 'waiting' | 'byEnd'> = {
  name: 'backends',
  indexes: {
    byService: ['account', 'service', 'createdAt'],
    byAccount: ['account', 'live', 'createdAt'],
    byNode: ['node', 'live'],
    waiting: ['live', 'node', 'cluster', 'createdAt'],
    byEnd: ['endedAt'],
  },
};

/** The fields of a new backend. */
export type BackendPlan = Omit<
  Backend,
  | 'createdAt'
  | 'status'
  | 'live'
  | 'history'
  | 'node'
  | 'startProblem'
  | 'address'
  | 'readyAt'
  | 'touchedAt'
  | 'endedAt'
  | 'stop'
>;

/** A new backend, `scheduled`. */
export function newBackend(plan: BackendPlan, now: Date): Backend {
  return { ...plan, createdAt: now, status: 'scheduled', live: true, history: [{ status: 'scheduled', time: now }] };
}

/** The position of a status in the lifecycle. */
export function rank(status: BackendStatus): number {
  return backendStatuses.indexOf(status);
}

/** Assigns a waiting backend to a node. Unchanged if the backend has ended, or has a node. */
export function assign(backend: Backend, node: string): Backend {
  if (!backend.live || backend.node !== undefined) return backend;
  return { ...backend, node };
}

/** Moves on to `loading`, `starting` or `waiting`. Unchanged if its status is that one or a later one. */
export function advance(backend: Backend, status: 'loading' | 'starting' | 'waiting', now: Date): Backend {
  return withEntry(backend, { status, time: now });
}

/** The container listens: it can be reached at `address`. Unchanged if the status is `ready` or a later one. */
export function becomeReady(backend: Backend, address: BackendAddress, now: Date): Backend {
  const ready = withEntry(backend, { status: 'ready', time: now });
  if (ready === backend) return backend;
  const { startProblem: _solved, ...rest } = ready;
  return { ...rest, address, readyAt: ready.history.at(-1)?.time ?? now };
}

/** Records why the backend is not ready. Unchanged if it does not wait, or if the reason is the same. */
export function withStartProblem(backend: Backend, startProblem: string): Backend {
  return backend.status !== 'waiting' || backend.startProblem === startProblem ? backend : { ...backend, startProblem };
}

/**
 * Requests to stop a backend. A backend without a node ends at once; otherwise its node applies the request. Unchanged if the same
 * or a harder stop was requested before. Throws `BackendNotRunning` if it has ended.
 */
export function requestStop(backend: Backend, kind: TerminationKind, reason: TerminationReason, now: Date): Backend {
  if (!backend.live) throw new ApiError('BackendNotRunning', `Backend "${backend.id}" has ended`);
  if (backend.node === undefined) return becomeTerminated(backend, { kind, reason, exitCode: null }, now);
  if (backend.stop && (backend.stop.kind === 'hard' || kind === 'soft')) return backend;
  return { ...backend, stop: { kind, reason: backend.stop?.reason ?? reason, requestedAt: now } };
}

/** The node has begun to apply the stop request. Unchanged if there is none, or the status is further. */
export function beginStop(backend: Backend, now: Date): Backend {
  if (!backend.stop) return backend;
  const { kind, reason } = backend.stop;
  const status = kind === 'soft' ? 'terminating' : 'hard-terminating';
  return withEntry(backend, { status, time: now, terminationKind: kind, terminationReason: reason });
}

/** A touch is not written again within this time, so that a thousand connects a second to one backend do not wait for each other. */
const touchIntervalMs = 1_000;

/** The same limit as a share of the idle time, so that a new user has most of it left to connect. The shorter one applies. */
const touchIntervalShare = 0.1;

/**
 * Restarts the idle time of a backend for which a connection is issued. Unchanged if it was touched a moment ago, or is ending: clients
 * must not get connections to an ending backend.
 */
export function touch(backend: Backend, now: Date): Backend {
  if (isEnding(backend)) return backend;
  const intervalMs = Math.min(touchIntervalMs, backend.maxIdleSeconds * 1000 * touchIntervalShare);
  const ageMs = now.getTime() - (backend.touchedAt?.getTime() ?? -Infinity);
  // After a clock was set back, a touch would otherwise stay recent.
  return ageMs >= 0 && ageMs < intervalMs ? backend : { ...backend, touchedAt: now };
}

/**
 * Begins to stop an idle backend. Unchanged if it was touched since the decision, or is ending.
 *
 * @param lastTouch - the last touch on which the decision was based
 */
export function sweepIdle(backend: Backend, lastTouch: Date | undefined, now: Date): Backend {
  if (isEnding(backend) || backend.touchedAt?.getTime() !== lastTouch?.getTime()) return backend;
  return beginStop(requestStop(backend, 'soft', 'swept', now), now);
}

/** How a backend ended. `kind` and `reason` are `null` when it exited or failed on its own. */
export interface Termination {
  readonly kind: TerminationKind | null;
  readonly reason: TerminationReason | null;
  readonly exitCode: number | null;
  readonly failure?: string;
}

/** The backend has ended. Unchanged if it had ended before. */
export function becomeTerminated(backend: Backend, ending: Termination, now: Date): Backend {
  if (!backend.live) return backend;
  const ended = withEntry(backend, {
    status: 'terminated',
    time: now,
    terminationKind: ending.kind,
    terminationReason: ending.reason,
    lastStatus: lastLiveStatus(backend),
    exitCode: ending.exitCode,
    ...(ending.failure !== undefined && { failure: ending.failure }),
  });
  const { env: _env, sealedEnv: _sealedEnv, startProblem: _problem, ...rest } = ended;
  return { ...rest, live: false, endedAt: now };
}

/** The backend's node is lost, and the state of its container unknown. Unchanged if the backend had ended before. */
export function becomeLost(backend: Backend, now: Date): Backend {
  return becomeTerminated(backend, { kind: null, reason: 'lost', exitCode: null }, now);
}

/** The termination of a backend whose container has exited: by the stop request in its history, or on its own. */
export function terminationOf(backend: Backend, exitCode: number | null): Termination {
  const last = backend.history.findLast((entry) => entry.terminationKind !== undefined);
  return { kind: last?.terminationKind ?? null, reason: last?.terminationReason ?? null, exitCode };
}

/** The status that a backend had before its end began. */
export function lastLiveStatus(backend: Backend): BackendStatus {
  const entry = backend.history.findLast(({ status }) => rank(status) < rank('terminating'));
  return entry?.status ?? 'scheduled';
}

/** The log fields of a termination. */
export function terminationFields({ history }: Backend) {
  const { terminationKind: kind, terminationReason: reason, exitCode, failure } = history.at(-1) ?? {};
  return { kind, reason, exitCode, failure };
}

/** Whether a backend is ending or has ended. */
export function isEnding(backend: Backend): boolean {
  return rank(backend.status) >= rank('terminating') || backend.stop !== undefined;
}

/** Adds an entry. Several machines with different clocks write entries, but the times of a history never decrease. */
function withEntry(backend: Backend, entry: StatusEntry): Backend {
  if (rank(entry.status) <= rank(backend.status)) return backend;
  const lastMs = backend.history.at(-1)?.time.getTime() ?? -Infinity;
  const time = new Date(Math.max(entry.time.getTime(), lastMs));
  return { ...backend, status: entry.status, history: [...backend.history, { ...entry, time }] };
}

export function noBackend(id: string): ApiError {
  return new ApiError('BackendNotFound', `There is no backend "${id}"`);
}
