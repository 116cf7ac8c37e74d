/** Keys: names that at most one running backend of a service holds, and their leases. */
import type { Collection } from '../core/store/store.ts';
import { isEnding } from './backend.ts';
import type { Backend } from './backend.ts';

export interface Key {
  /** `<account>/<service>/<key>`. */
  readonly id: string;
  /** The backend that holds the key, or held it last. */
  readonly backend: string;
  /** Rises with every assignment. */
  readonly fencingToken: number;
  /** Until when the holder may act without renewing. */
  readonly leaseUntil: Date;
  /** Until when the document of the backend may be missing. */
  readonly claimUntil: Date;
}

export const keys: Collection<Key, 'byLease'> = { name: 'keys', indexes: { byLease: ['leaseUntil'] } };

/** The duration of a lease: longer than a restart of the store, and short, because clients wait for it after a node's death. */
export const leaseMs = 60_000;

/** How often a holder renews: five renewals may fail before it must stop. */
export const renewEveryMs = 10_000;

/** With this much of its lease left, a holder that could not renew stops softly: the backend has until the hard stop to save. */
export const softStopBeforeMs = 25_000;

/** With this much left it stops hard, so that it has ended before the lease ends, even by a clock that is a few seconds off. */
export const hardStopBeforeMs = 10_000;

/**
 * With this much left the init of a container asks its program to stop, if the worker has not done so: late enough that a live worker
 * acts first, early enough to leave the program time to save.
 */
export const initSoftStopBeforeMs = 20_000;

/** With this much left the init ends the container: within a lease, a machine's clock is never wrong by seconds. */
export const initHardStopBeforeMs = 5_000;

/**
 * How long the backend of a new assignment may be missing. Its document is written a few milliseconds later, and a slow disk
 * takes a second or two. A claimer that dies between the two writes blocks the key for this long; a slower claimer checks that its
 * claim is still valid.
 */
export const claimMs = 5_000;

/** This long before its end, a claim may already have ended for a process whose clock differs. */
const claimMarginMs = claimMs / 2;

export function keyId(account: string, service: string, key: string): string {
  return `${account}/${service}/${key}`;
}

/**
 * Assigns a key to a new backend, with a higher fencing token. Tokens are never below the time in milliseconds, so they keep
 * rising even if a restored backup lacks the key's document.
 */
export function claimKey(current: Key | undefined, id: string, backend: string, now: Date): Key {
  const fencingToken = Math.max((current?.fencingToken ?? 0) + 1, now.getTime());
  const leaseUntil = new Date(now.getTime() + leaseMs);
  return { id, backend, fencingToken, leaseUntil, claimUntil: new Date(now.getTime() + claimMs) };
}

/**
 * Assigns a key to a new backend if it was neither assigned nor renewed since it was read as `seen`. Otherwise the key is unchanged.
 */
export function claimSeenKey(
  current: Key | undefined,
  seen: Key | undefined,
  claim: { readonly id: string; readonly backend: string; readonly now: Date },
): Key {
  const isAsSeen =
    current?.fencingToken === seen?.fencingToken && current?.leaseUntil.getTime() === seen?.leaseUntil.getTime();
  return current && !isAsSeen ? current : claimKey(current, claim.id, claim.backend, claim.now);
}

/** Whether a claim whose backend has just been written is certainly valid: no other process can have found it ended. */
export function isClaimCertain(claim: Key, now: Date): boolean {
  return now.getTime() < claim.claimUntil.getTime() - claimMarginMs;
}

/** Renews a lease. Unchanged if the key was assigned to another backend meanwhile. */
export function renewKey(current: Key, fencingToken: number, now: Date): Key {
  if (current.fencingToken !== fencingToken) return current;
  return { ...current, leaseUntil: new Date(now.getTime() + leaseMs) };
}

/** Whether the holder of `fencingToken` holds the key now. */
export function holdsKey(key: Key | undefined, fencingToken: number, now: Date): boolean {
  return key !== undefined && key.fencingToken === fencingToken && now < key.leaseUntil;
}

/** A claim takes seconds and is abandoned long before this time, so no claim can be in progress for a key that is deleted. */
const deletableAfterMs = 60 * 60 * 1000;

/** Keys whose leases ended before this time may be deleted, if `isKeyDeletable`. */
export function deletableKeysBefore(now: Date): Date {
  return new Date(now.getTime() - deletableAfterMs);
}

/**
 * Whether a key that no live backend holds can be deleted. Its next fencing token is higher nevertheless: tokens are never below
 * the time in milliseconds, and the current token is.
 */
export function isKeyDeletable(key: Key, now: Date): boolean {
  const before = deletableKeysBefore(now);
  return key.leaseUntil < before && key.fencingToken < before.getTime();
}

/**
 * The state of a key.
 * `held`: its backend serves it. `ending`: its backend is ending; a successor may be created but must wait. `lapsed`: the node of its
 * backend has not renewed; the backend counts as lost if that lasts. `claiming`: the key was assigned a moment ago, and its backend
 * is being written. `free`: no backend holds it.
 */
export type KeyState = 'held' | 'ending' | 'lapsed' | 'claiming' | 'free';

/**
 * @param backend - the backend that the key names, if there is one
 * @param when.liveNode - a node that is known to be alive, whatever its leases say
 */
export function keyState(
  key: Key | undefined,
  backend: Backend | undefined,
  { now, liveNode }: { readonly now: Date; readonly liveNode?: string | undefined },
): KeyState {
  if (!key) return 'free';
  if (!backend) return now < key.claimUntil ? 'claiming' : 'free';
  if (!backend.live) return 'free';
  if (backend.node !== undefined && backend.node !== liveNode && now >= key.leaseUntil) return 'lapsed';
  return isEnding(backend) ? 'ending' : 'held';
}
