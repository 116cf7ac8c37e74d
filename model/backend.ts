/** Backends and the whole of their life. Statuses only move forward, and this file is the only one that knows the order. */
import { backendStatuses } from '../contract/statuses.ts';
import type { BackendStatus, TerminationKind, TerminationReason } from '../contract/statuses.ts';
import type { OlderGeneration } from '../contract/generations.ts';
import type { Collection } from '../core/store/store.ts';
import { ApiError } from './api-error.ts';

/** One step in a backend's history. */
export interface StatusEntry {
  readonly status: BackendStatus;
  readonly time: Date;
  /** On `terminating`, `hard-terminating` and `terminated`; `null` when nobody stopped it. */
  readonly terminationKind?: TerminationKind | null;
  readonly terminationReason?: TerminationReason | null;
  /** On `terminated`: the status before the termination began. */
  readonly lastStatus?: BackendStatus;
  /** On `terminated`: the container's exit code, `null` where there was no container or nobody saw it end. */
  readonly exitCode?: number | null;
  /** On `terminated`: what went wrong, for people. */
  readonly failure?: string;
}

/** A wish that a backend ends. Written by whoever wants it, carried out by the backend's node. */
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
  /** The backend that held the key before and is still ending: this one does not start before that has ended. */
  readonly waitsFor?: string;
  /** Variables of the container. Forgotten when the backend has ended. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables that are encrypted here (`container-env.ts`), and override the others. Forgotten when the backend has ended. */
  readonly sealedEnv?: string;
  readonly limits: BackendLimits;
  /** `true`: a folder of the key's own; a text: a folder of that name, shared within the service. */
  readonly mount?: true | string;
  readonly maxIdleSeconds: number;
  readonly lifetimeLimitSeconds?: number;
  /** The generation of the service API through which it was spawned. Absent: v2. */
  readonly generation?: OlderGeneration;
  /** The hash of the bearer token that each request to it needs. Absent: requests need none. */
  readonly bearerHash?: string;
  /** The port on which the container listens. */
  readonly port: number;
  readonly createdAt: Date;
  readonly status: BackendStatus;
  /** Whether it has not ended. */
  readonly live: boolean;
  readonly history: readonly StatusEntry[];
  /** The node that runs it, once one has taken it. */
  readonly node?: string;
  /** Where the proxy reaches it, from `ready` on. */
  readonly address?: { readonly host: string; readonly port: number };
  readonly readyAt?: Date;
  /** When a connection to it was last given out, exact to the moment in which it is not written again. Touches are compared by it. */
  readonly touchedAt?: Date;
  /** When it ended: by this it is deleted, once its history has been kept for long enough. */
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

/** What a new backend is made of. */
export type BackendPlan = Omit<
  Backend,
  'createdAt' | 'status' | 'live' | 'history' | 'node' | 'address' | 'readyAt' | 'touchedAt' | 'endedAt' | 'stop'
>;

/** A new backend, `scheduled`. */
export function newBackend(plan: BackendPlan, now: Date): Backend {
  return { ...plan, createdAt: now, status: 'scheduled', live: true, history: [{ status: 'scheduled', time: now }] };
}

/** The place of a status in the order of a life. */
export function rank(status: BackendStatus): number {
  return backendStatuses.indexOf(status);
}

/** A node takes a backend that waits for one. Unchanged if it has ended, is ending, or another node has it. */
export function assign(backend: Backend, node: string): Backend {
  if (!backend.live || backend.node !== undefined) return backend;
  return { ...backend, node };
}

/** Moves on to `loading`, `starting` or `waiting`. Unchanged if the backend is there already, or further. */
export function advance(backend: Backend, status: 'loading' | 'starting' | 'waiting', now: Date): Backend {
  return withEntry(backend, { status, time: now });
}

/** The container listens: it can be reached at `address`. Unchanged if the backend is ready already, ending or ended. */
export function becomeReady(backend: Backend, address: { host: string; port: number }, now: Date): Backend {
  const ready = withEntry(backend, { status: 'ready', time: now });
  return ready === backend ? backend : { ...ready, address, readyAt: ready.history.at(-1)?.time ?? now };
}

/**
 * Asks that a backend ends. A backend that no node has taken ends at once; otherwise its node carries the wish out.
 * Unchanged if the same, or a harder end, was asked for before. Throws `BackendNotRunning` if it has ended.
 */
export function requestStop(backend: Backend, kind: TerminationKind, reason: TerminationReason, now: Date): Backend {
  if (!backend.live) throw new ApiError('BackendNotRunning', `Backend "${backend.id}" has ended`);
  if (backend.node === undefined) return becomeTerminated(backend, { kind, reason, exitCode: null }, now);
  if (backend.stop && (backend.stop.kind === 'hard' || kind === 'soft')) return backend;
  return { ...backend, stop: { kind, reason: backend.stop?.reason ?? reason, requestedAt: now } };
}

/** The node has begun to carry out what `requestStop` asked for. Unchanged if nothing was asked for, or it is further. */
export function beginStop(backend: Backend, now: Date): Backend {
  if (!backend.stop) return backend;
  const { kind, reason } = backend.stop;
  const status = kind === 'soft' ? 'terminating' : 'hard-terminating';
  return withEntry(backend, { status, time: now, terminationKind: kind, terminationReason: reason });
}

/** A touch this recent is not written again, so that a thousand connects a second to one backend do not wait for each other. */
const touchStandsMs = 1_000;

/** Nor does it stand for more than this part of the idle time: the rest is what a new user has to arrive. */
const touchStandsForPart = 0.1;

/**
 * A connection to a backend is given out: its idle time starts anew. Unchanged if it was touched a moment ago, and if it is
 * ending: then no client may be sent to it.
 */
export function touch(backend: Backend, now: Date): Backend {
  if (isEnding(backend)) return backend;
  const standsMs = Math.min(touchStandsMs, backend.maxIdleSeconds * 1000 * touchStandsForPart);
  const ageMs = now.getTime() - (backend.touchedAt?.getTime() ?? -Infinity);
  // A clock that was set back would make a touch young for ever.
  return ageMs >= 0 && ageMs < standsMs ? backend : { ...backend, touchedAt: now };
}

/**
 * Begins to stop a backend that is idle. Unchanged if it was touched since it was judged, or is ending.
 *
 * @param judgedBy - the last touch that was known then
 */
export function sweepIdle(backend: Backend, judgedBy: Date | undefined, now: Date): Backend {
  if (isEnding(backend) || backend.touchedAt?.getTime() !== judgedBy?.getTime()) return backend;
  return beginStop(requestStop(backend, 'soft', 'swept', now), now);
}

/** How a backend ended. `kind` and `reason` are `null` when it exited or failed on its own. */
export interface Termination {
  readonly kind: TerminationKind | null;
  readonly reason: TerminationReason | null;
  readonly exitCode: number | null;
  readonly failure?: string;
}

/** The backend has ended. Unchanged if it had already. */
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
  const { env: _env, sealedEnv: _sealedEnv, ...rest } = ended;
  return { ...rest, live: false, endedAt: now };
}

/** Whoever ran the backend is gone, and what became of its container is unknown. Unchanged if the backend had ended already. */
export function becomeLost(backend: Backend, now: Date): Backend {
  return becomeTerminated(backend, { kind: null, reason: 'lost', exitCode: null }, now);
}

/** The ending that fits what was asked for: by request if one stood, otherwise on its own. */
export function terminationOf(backend: Backend, exitCode: number | null): Termination {
  const last = backend.history.findLast((entry) => entry.terminationKind !== undefined);
  return { kind: last?.terminationKind ?? null, reason: last?.terminationReason ?? null, exitCode };
}

/** The status that a backend had before its end began. */
export function lastLiveStatus(backend: Backend): BackendStatus {
  const entry = backend.history.findLast(({ status }) => rank(status) < rank('terminating'));
  return entry?.status ?? 'scheduled';
}

/** What the log says of an end. */
export function terminationFields({ history }: Backend) {
  const { terminationKind: kind, terminationReason: reason, exitCode, failure } = history.at(-1) ?? {};
  return { kind, reason, exitCode, failure };
}

/** Whether a backend is on its way out, or gone. */
export function isEnding(backend: Backend): boolean {
  return rank(backend.status) >= rank('terminating') || backend.stop !== undefined;
}

/** The entries of one history are written by several machines, whose clocks differ: its times never fall all the same. */
function withEntry(backend: Backend, entry: StatusEntry): Backend {
  if (rank(entry.status) <= rank(backend.status)) return backend;
  const lastMs = backend.history.at(-1)?.time.getTime() ?? -Infinity;
  const time = new Date(Math.max(entry.time.getTime(), lastMs));
  return { ...backend, status: entry.status, history: [...backend.history, { ...entry, time }] };
}
