import { describe, expect, test } from 'vitest';
import { assign, becomeTerminated, newBackend, requestStop } from './backend.ts';
import type { Backend } from './backend.ts';
import {
  claimKey,
  claimMs,
  claimSeenKey,
  hardStopBeforeMs,
  holdsKey,
  isClaimCertain,
  keyState,
  leaseMs,
  renewEveryMs,
  renewKey,
  softStopBeforeMs,
} from './key.ts';
import { backendPlan } from './testing/backend-plan.ts';

const start = new Date('2026-01-01T00:00:00.000Z');
const after = (ms: number) => new Date(start.getTime() + ms);
const key = claimKey(undefined, 'acme/draw/room-1', 'first', start);

function backend(change: (fresh: Backend) => Backend = (fresh) => fresh): Backend {
  return change(newBackend(backendPlan({ id: 'first' }), start));
}

describe('a key', () => {
  test('gets a higher fencing token with every assignment, even if its document was lost', () => {
    const next = claimKey(key, key.id, 'second', start);
    expect(next.fencingToken).toBe(key.fencingToken + 1);
    expect(claimKey(undefined, key.id, 'third', after(1_000)).fencingToken).toBeGreaterThan(next.fencingToken);
    expect(Number.isSafeInteger(next.fencingToken)).toBe(true);
  });

  test('is claimed only if it is unchanged since it was read', () => {
    const claim = { id: key.id, backend: 'second', now: after(10) };
    expect(claimSeenKey(key, key, claim)).toMatchObject({ backend: 'second', fencingToken: key.fencingToken + 10 });
    expect(claimSeenKey(undefined, key, claim).backend).toBe('second');
    for (const changed of [claimKey(key, key.id, 'other', start), renewKey(key, key.fencingToken, after(1))]) {
      expect(claimSeenKey(changed, key, claim)).toBe(changed);
    }
    expect(claimSeenKey(key, undefined, claim)).toBe(key);
  });

  test('is certainly still claimed only well before the end of the claim', () => {
    expect(isClaimCertain(key, after(1_000))).toBe(true);
    expect(isClaimCertain(key, after(claimMs - 1_000))).toBe(false);
  });

  test('is renewed by its holder only', () => {
    expect(renewKey(key, key.fencingToken, after(5_000)).leaseUntil).toEqual(after(5_000 + leaseMs));
    const reassigned = claimKey(key, key.id, 'second', start);
    expect(renewKey(reassigned, key.fencingToken, after(5_000))).toBe(reassigned);
  });

  test('is held until the lease ends', () => {
    expect(holdsKey(key, key.fencingToken, after(leaseMs - 1))).toBe(true);
    expect(holdsKey(key, key.fencingToken, after(leaseMs))).toBe(false);
    expect(holdsKey(key, key.fencingToken - 1, start)).toBe(false);
    expect(holdsKey(undefined, key.fencingToken, start)).toBe(false);
  });

  test('loses its holder, softly and then by force, before its lease can end', () => {
    expect(renewEveryMs).toBeLessThan(leaseMs - softStopBeforeMs);
    expect(hardStopBeforeMs).toBeLessThan(softStopBeforeMs);
    expect(hardStopBeforeMs).toBeGreaterThan(0);
  });
});

describe('the holder of a key', () => {
  const running = backend((fresh) => assign(fresh, 'node-1'));

  test.each([
    ['free', 'there is no key', undefined, undefined, start],
    ['claiming', 'its backend is just being written', key, undefined, start],
    ['claiming', 'its backend may still be written', key, undefined, after(claimMs - 1)],
    ['free', 'its backend was not written in time', key, undefined, after(claimMs)],
    ['held', 'its backend waits for a node, however long', key, backend(), after(10 * leaseMs)],
    ['held', 'its backend runs and renews', key, running, after(leaseMs - 1)],
    ['lapsed', 'its backend runs and did not renew', key, running, after(leaseMs)],
    ['ending', 'its backend was asked to stop', key, requestStop(running, 'soft', 'swept', start), start],
    [
      'free',
      'its backend has ended',
      key,
      becomeTerminated(running, { kind: null, reason: null, exitCode: 0 }, start),
      start,
    ],
  ] as const)('%s: %s', (state, _when, theKey, holder, now) => {
    expect(keyState(theKey, holder, { now })).toBe(state);
  });

  test('held: its backend runs on a live node that could not renew', () => {
    const late = { now: after(leaseMs), liveNode: 'node-1' };
    expect(keyState(key, running, late)).toBe('held');
    expect(keyState(key, requestStop(running, 'soft', 'swept', start), late)).toBe('ending');
    expect(keyState(key, running, { ...late, liveNode: 'node-2' })).toBe('lapsed');
  });
});
