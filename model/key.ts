/** Keys: names that at most one running backend of a service holds, and the leases by which they are held. */
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
  /** Until when the holder may act as such without renewing. */
  readonly leaseUntil: Date;
}

export const keys: Collection<Key> = { name: 'keys', indexes: {} };

/** How long a lease lasts: long enough to ride out a restart of the store, short enough to wait for after a node's death. */
export const leaseMs = 60_000;

/** How often a holder renews: five renewals may fail before it must let go. */
export const renewEveryMs = 10_000;

/** With this much of its lease left, a holder that could not renew stops softly: the grace is what a backend has to save. */
export const softStopBeforeMs = 25_000;

/** With this much left it stops hard, so that it is gone before the lease ends, on a clock that is a few seconds off too. */
export const hardStopBeforeMs = 10_000;

export function keyId(account: string, service: string, key: string): string {
  return `${account}/${service}/${key}`;
}

/**
 * Assigns a key to a new backend, with a higher fencing token. Tokens are never below the time in milliseconds, so they go on
 * rising when a key's document is lost with a restored backup.
 */
export function claimKey(current: Key | undefined, id: string, backend: string, now: Date): Key {
  const fencingToken = Math.max((current?.fencingToken ?? 0) + 1, now.getTime());
  return { id, backend, fencingToken, leaseUntil: new Date(now.getTime() + leaseMs) };
}

/** Prolongs a lease. Unchanged if the key was assigned anew since: whoever asked does not hold it any more. */
export function renewKey(current: Key, fencingToken: number, now: Date): Key {
  if (current.fencingToken !== fencingToken) return current;
  return { ...current, leaseUntil: new Date(now.getTime() + leaseMs) };
}

/** Whether the holder of `fencingToken` holds the key now. */
export function holdsKey(key: Key | undefined, fencingToken: number, now: Date): boolean {
  return key !== undefined && key.fencingToken === fencingToken && now < key.leaseUntil;
}

/**
 * Who stands behind a key.
 * `held`: a backend that serves it. `ending`: a backend that is on its way out, whose successor may be named but must wait.
 * `lapsed`: a backend whose node has not renewed; it counts as lost. `claiming`: assigned a moment ago, its backend is just
 * being written. `free`: nobody.
 */
export type KeyState = 'held' | 'ending' | 'lapsed' | 'claiming' | 'free';

/** @param backend - the backend that the key names, if there is one */
export function keyState(key: Key | undefined, backend: Backend | undefined, now: Date): KeyState {
  if (!key) return 'free';
  if (!backend) return now < key.leaseUntil ? 'claiming' : 'free';
  if (!backend.live) return 'free';
  if (backend.node !== undefined && now >= key.leaseUntil) return 'lapsed';
  return isEnding(backend) ? 'ending' : 'held';
}
