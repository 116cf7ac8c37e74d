// Takes about 90 s
/** The ways in which backends end: swept, by the lifetime limit, stopped softly, stopped hard. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEcho } from '../kit/platform/echo.ts';
import { onAllDrivers, Fixture } from './fixture.ts';

/** A backend that stops by itself does so within this time, also while nine others start and stop on a busy machine. */
const graceSeconds = 10;

onAllDrivers((setting) => {
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await Fixture.open(setting, { BERTH_STOP_GRACE_SECONDS: String(graceSeconds) });
    await fixture.push('serve');
    await fixture.push('stubborn');
    await fixture.pushSample();
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  const secondsBetween = (from: string, to: string) => (Date.parse(to) - Date.parse(from)) / 1000;

  test.concurrent('an idle backend is swept after max_idle_seconds, and its URL returns 410', async () => {
    const connection = await fixture.connect('serve', { spawn: { max_idle_seconds: 2 } });
    expect((await fetch(connection.url)).status).toBe(200);
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    const at = (name: string) => statuses.find(({ status }) => status === name)?.time ?? '';
    expect(secondsBetween(at('ready'), at('terminating'))).toBeGreaterThanOrEqual(2);
    expect(statuses.at(-1)).toMatchObject({ termination_reason: 'swept', termination_kind: 'soft' });
    const gone = await fetch(connection.url);
    expect([gone.status, gone.headers.get('x-berth-error')]).toEqual([410, 'gone']);
  });

  test.concurrent('a connect in the last moment of the idle time returns a URL that works', async () => {
    const settings = { key: 'last-moment', spawn: { max_idle_seconds: 1 } };
    let connection = await fixture.connectReady('serve', settings);
    const seen = { joined: 0, spawned: 0 };
    // The time of the sweep depends on how busy the machine is, so each round moves towards it: later if the session still
    // existed, earlier if it was swept.
    let pauseMs = 1_500;
    for (let round = 0; round < 10 || (Math.min(seen.joined, seen.spawned) === 0 && round < 30); round++) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      const askedAtMs = performance.now();
      connection = await fixture.connect('serve', settings);
      seen[connection.spawned ? 'spawned' : 'joined'] += 1;
      const { status } = await fetch(connection.url);
      // On a busy machine, the client may use its URL only after the idle time, of which it has at least nine tenths.
      if (status !== 200) expect(performance.now() - askedAtMs).toBeGreaterThan(900);
      pauseMs *= connection.spawned ? 0.8 : 1.2;
    }
    // Connects happened on both sides of that moment.
    expect(Object.values(seen)).not.toContain(0);
  });

  test.concurrent('an open WebSocket keeps its backend until it closes', async () => {
    const connection = await fixture.connect('pad', { spawn: { max_idle_seconds: 1 } });
    const socket = await openEcho(connection.url);
    const openedAt = Date.now();
    const swept = fixture.statusesUntil(connection, 'terminating');
    // More than three idle times without a message.
    for (let i = 0; i < 4; i += 1) {
      const pong = once(socket, 'pong');
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      socket.ping();
      await pong;
    }
    const closedAt = Date.now();
    socket.close();
    const last = (await swept).at(-1);
    expect(closedAt - openedAt).toBeGreaterThan(3_000);
    // The idle time, less the error of the store's time, which a busy worker reads late.
    expect(Date.parse(last?.time ?? '')).toBeGreaterThanOrEqual(closedAt + 500);
  });

  test.concurrent('a slow download keeps its backend until its last byte', async () => {
    const connection = await fixture.connect('serve', { spawn: { max_idle_seconds: 1 } });
    const text = await (await fetch(`${connection.url}cgi-bin/slow?5`)).text();
    expect(text).toBe('line 1\nline 2\nline 3\nline 4\nline 5\n');
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.at(-1)).toMatchObject({ termination_reason: 'swept' });
  });

  test.concurrent('the lifetime limit ends a backend with an open connection', async () => {
    const connection = await fixture.connect('pad', { spawn: { lifetime_limit_seconds: 6 } });
    const socket = await openEcho(connection.url);
    const closed = once(socket, 'close');
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    const at = (name: string) => statuses.find(({ status }) => status === name)?.time ?? '';
    expect(secondsBetween(at('ready'), at('terminating'))).toBeGreaterThanOrEqual(6);
    expect(statuses.at(-1)).toMatchObject({ termination_reason: 'swept', termination_kind: 'soft' });
    await closed;
  });

  test.concurrent('a soft stop sends SIGTERM and waits for exit code 0', async () => {
    const connection = await fixture.connectReady('serve');
    await fixture.terminate(connection);
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.map(({ status }) => status).slice(-2)).toEqual(['terminating', 'terminated']);
    expect(statuses.at(-1)).toMatchObject({
      termination_reason: 'external',
      termination_kind: 'soft',
      exit_error: false,
    });
    await expect(fixture.terminate(connection)).rejects.toThrow('BackendNotRunning');
  });

  test.concurrent('a soft stop becomes hard after the grace time if the backend ignores SIGTERM', async () => {
    const connection = await fixture.connectReady('stubborn');
    await fixture.terminate(connection);
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.map(({ status }) => status).slice(-3)).toEqual(['terminating', 'hard-terminating', 'terminated']);
    const [soft, hard] = statuses.slice(-3);
    // Both are times of the store, which a busy worker reads with an error of some hundredths of a second.
    expect(secondsBetween(soft?.time ?? '', hard?.time ?? '')).toBeGreaterThanOrEqual(graceSeconds - 0.5);
    expect(statuses.at(-1)).toMatchObject({ termination_reason: 'external', exit_error: true });
  });

  test.concurrent('a hard stop ends a backend at once, even if it ignores SIGTERM', async () => {
    const connection = await fixture.connectReady('stubborn');
    await fixture.terminate(connection, true);
    const statuses = await fixture.statusesUntil(connection, 'terminated');
    expect(statuses.map(({ status }) => status).slice(-2)).toEqual(['hard-terminating', 'terminated']);
    expect(statuses.at(-1)).toMatchObject({ termination_reason: 'external', termination_kind: 'hard' });
  });

  test.concurrent('the next session of a key starts after the previous session has saved and ended', async () => {
    const spawn = { executable: { mount: true as const } };
    const first = await fixture.connectReady('pad', { key: 'kept', spawn });
    await fixture.terminate(first);
    // The connect waits for the first session, which is still saving.
    const second = await fixture.connect('pad', { key: 'kept', spawn });
    expect([second.spawned, second.backend_id === first.backend_id]).toEqual([true, false]);
    expect((await fetch(`${second.url}healthz`)).status).toBe(200);
    const [before, after] = [await fixture.backend(first), await fixture.backend(second)];
    const ended = before.statuses.find(({ status }) => status === 'terminated')?.time ?? '';
    const started = after.statuses.find(({ status }) => status === 'starting')?.time ?? '';
    expect(secondsBetween(ended, started)).toBeGreaterThanOrEqual(0);
  });
});
