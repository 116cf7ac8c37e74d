import { describe, expect, it } from 'vitest';
import { becomeReady, newBackend } from '../../model/backend.ts';
import { idleSince, isIdleTooLong, isPastLifetime, isStartOverdue } from './sweep.ts';
import type { Activity } from './sweep.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000);
const backend = newBackend(backendPlan(), at(0));

describe('isStartOverdue', () => {
  it('counts from scheduled, without its pauses', () => {
    const run = { backend, isStartTimePaused: false, pausedMs: 0 };
    expect(isStartOverdue(run, 300, { now: at(299) })).toBe(false);
    expect(isStartOverdue(run, 300, { now: at(300) })).toBe(true);
    expect(isStartOverdue({ ...run, pausedMs: 60_000 }, 300, { now: at(359) })).toBe(false);
    expect(isStartOverdue({ ...run, pausedMs: 60_000 }, 300, { now: at(360) })).toBe(true);
    expect(isStartOverdue({ ...run, isStartTimePaused: true }, 300, { now: at(9_999) })).toBe(false);
  });

  it('does not count the time for which the process was frozen, even if the backend was claimed later', () => {
    const run = { backend, isStartTimePaused: false, pausedMs: 0 };
    const freeze = { fromMs: at(100).getTime(), untilMs: at(500).getTime() };
    expect(isStartOverdue(run, 300, { now: at(699), freeze })).toBe(false);
    expect(isStartOverdue(run, 300, { now: at(700), freeze })).toBe(true);
    const before = { fromMs: at(-500).getTime(), untilMs: at(-100).getTime() };
    expect(isStartOverdue(run, 300, { now: at(300), freeze: before })).toBe(true);
  });

  it('is false for a ready backend', () => {
    const ready = becomeReady(backend, { host: '10.0.0.2', port: 8080 }, at(1));
    expect(isStartOverdue({ backend: ready, isStartTimePaused: false, pausedMs: 0 }, 300, { now: at(9_999) })).toBe(
      false,
    );
  });
});

const activity: Activity = {
  readyAt: at(10),
  closedAt: undefined,
  touchedAt: undefined,
  watchedSince: undefined,
  reportedSince: at(0),
  isOpen: false,
};

describe('idleSince', () => {
  it('is the time of ready, the last close, the last touch, or the first report of a proxy, whichever is last', () => {
    expect(idleSince(activity)).toEqual(at(10));
    expect(idleSince({ ...activity, closedAt: at(20) })).toEqual(at(20));
    expect(idleSince({ ...activity, closedAt: at(20), touchedAt: at(25) })).toEqual(at(25));
    expect(idleSince({ ...activity, touchedAt: at(20), watchedSince: at(25) })).toEqual(at(25));
    expect(idleSince({ ...activity, closedAt: at(20), reportedSince: at(30) })).toEqual(at(30));
  });

  it('is unknown while a connection is open, or no proxy reports', () => {
    expect(idleSince({ ...activity, isOpen: true })).toBeUndefined();
    expect(idleSince({ ...activity, reportedSince: undefined })).toBeUndefined();
  });
});

describe('limits', () => {
  it('are reached to the millisecond', () => {
    expect(isIdleTooLong(activity, 5, new Date(at(15).getTime() - 1))).toBe(false);
    expect(isIdleTooLong(activity, 5, at(15))).toBe(true);
    expect(isPastLifetime(at(10), 5, new Date(at(15).getTime() - 1))).toBe(false);
    expect(isPastLifetime(at(10), 5, at(15))).toBe(true);
    expect(isPastLifetime(at(10), undefined, at(1e9))).toBe(false);
  });
});
