import { describe, expect, it } from 'vitest';
import { becomeReady, newBackend } from '../../model/backend.ts';
import { isStartOverdue } from './sweep.ts';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000);
const backend = newBackend(
  {
    id: 'backend00001',
    account: 'acme',
    service: 'draw',
    environment: 'default',
    cluster: 'default',
    imageDigest: 'sha256:',
    limits: {},
    maxIdleSeconds: 300,
    port: 8080,
  },
  at(0),
);

describe('isStartOverdue', () => {
  it('counts from scheduled, without the time that the image takes', () => {
    const run = { backend, isPulling: false, pulledMs: 0 };
    expect(isStartOverdue(run, 300, { now: at(299) })).toBe(false);
    expect(isStartOverdue(run, 300, { now: at(300) })).toBe(true);
    expect(isStartOverdue({ ...run, pulledMs: 60_000 }, 300, { now: at(359) })).toBe(false);
    expect(isStartOverdue({ ...run, pulledMs: 60_000 }, 300, { now: at(360) })).toBe(true);
    expect(isStartOverdue({ ...run, isPulling: true }, 300, { now: at(9_999) })).toBe(false);
  });

  it('does not count the time for which the process stood still, also if the backend was taken later', () => {
    const run = { backend, isPulling: false, pulledMs: 0 };
    const still = { fromMs: at(100).getTime(), untilMs: at(500).getTime() };
    expect(isStartOverdue(run, 300, { now: at(699), still })).toBe(false);
    expect(isStartOverdue(run, 300, { now: at(700), still })).toBe(true);
    const before = { fromMs: at(-500).getTime(), untilMs: at(-100).getTime() };
    expect(isStartOverdue(run, 300, { now: at(300), still: before })).toBe(true);
  });

  it('does not concern a backend that is ready', () => {
    const ready = becomeReady(backend, { host: '10.0.0.2', port: 8080 }, at(1));
    expect(isStartOverdue({ backend: ready, isPulling: false, pulledMs: 0 }, 300, { now: at(9_999) })).toBe(false);
  });
});
