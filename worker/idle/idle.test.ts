import { describe, expect, it } from 'vitest';
import { idleSince, isIdleTooLong, isPastLifetime } from './idle.ts';
import type { IdleFacts } from './idle.ts';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000);

const facts: IdleFacts = {
  readyAt: at(10),
  closedAt: undefined,
  touchedAt: undefined,
  watchedSince: undefined,
  hearingSince: at(0),
  isOpen: false,
};

describe('idleSince', () => {
  it('is the time of ready, the last close, the last touch, or the first word of a proxy, whichever is last', () => {
    expect(idleSince(facts)).toEqual(at(10));
    expect(idleSince({ ...facts, closedAt: at(20) })).toEqual(at(20));
    expect(idleSince({ ...facts, closedAt: at(20), touchedAt: at(25) })).toEqual(at(25));
    expect(idleSince({ ...facts, touchedAt: at(20), watchedSince: at(25) })).toEqual(at(25));
    expect(idleSince({ ...facts, closedAt: at(20), hearingSince: at(30) })).toEqual(at(30));
  });

  it('is unknown while a connection is open, or no proxy is heard', () => {
    expect(idleSince({ ...facts, isOpen: true })).toBeUndefined();
    expect(idleSince({ ...facts, hearingSince: undefined })).toBeUndefined();
  });
});

describe('limits', () => {
  it('are reached to the millisecond', () => {
    expect(isIdleTooLong(facts, 5, new Date(at(15).getTime() - 1))).toBe(false);
    expect(isIdleTooLong(facts, 5, at(15))).toBe(true);
    expect(isPastLifetime(at(10), 5, new Date(at(15).getTime() - 1))).toBe(false);
    expect(isPastLifetime(at(10), 5, at(15))).toBe(true);
    expect(isPastLifetime(at(10), undefined, at(1e9))).toBe(false);
  });
});
