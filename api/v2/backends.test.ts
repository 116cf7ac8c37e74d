import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { becomeTerminated } from '../../model/backend.ts';
import { proxies, traffic } from '../../model/traffic.ts';
import { becomeServing, connectPath, digestOf, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('backends', () => {
  test('show only their status without an access token, from any origin', async () => {
    const { body } = await api.post(connectPath);
    const reply = await api.call('GET', `/v2/backend/${body.backend_id}/status`);
    expect(reply.headers.get('access-control-allow-origin')).toBe('*');
    expect(reply.body).toEqual({ status: 'scheduled', time: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) });
  });

  test('stream their history, then new statuses, and end after terminated', async () => {
    const { body } = await api.post(connectPath);
    const response = await fetch(`${body.status_url}/stream`);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const whole = response.text();
    await api.change(body.backend_id, becomeServing);
    await api.change(body.backend_id, (current) =>
      becomeTerminated(current, { kind: null, reason: null, exitCode: 3 }, new Date()),
    );
    const events = (await whole).split('\n').filter((line) => line.startsWith('data:'));
    const statuses = events.map((line) => JSON.parse(line.slice(5)));
    expect(statuses.map(({ status }) => status)).toEqual(['scheduled', 'waiting', 'ready', 'terminated']);
    expect(statuses.at(-1)).toMatchObject({ termination_kind: null, termination_reason: null, exit_error: true });
    const resumed = await api.call('GET', `/v2/backend/${body.backend_id}/status/stream`, {
      headers: { 'last-event-id': '2' },
    });
    expect(resumed.body.match(/^data:/gm)).toHaveLength(1);
  });

  test('are listed: the running ones of an account, or all of a service within a time range', async () => {
    await api.addService('other');
    await api.addImage('acme/other', 'latest', digestOf('b'));
    const first = (await api.post('/v2/service/acme/other/connect')).body.backend_id;
    const second = (await api.post('/v2/service/acme/other/connect')).body.backend_id;
    await api.post(`/v2/backend/${first}/terminate`);
    const running = (await api.get('/v2/account/acme/backends')).body.running_backends.map(
      ({ id }: { id: string }) => id,
    );
    expect(running).toContain(second);
    expect(running).not.toContain(first);
    const all = (await api.get('/v2/service/acme/other/backends')).body.backends;
    expect(all.slice(0, 2).map(({ id }: { id: string }) => id)).toEqual([second, first]);
    const none = await api.get('/v2/service/acme/other/backends?end=2020-01-01T00:00:00Z');
    expect(none.body.backends).toEqual([]);
    expect((await api.get('/v2/service/acme/other/backends?start=yesterday')).status).toBe(400);
  });

  test('show their traffic, without the open connections of dead proxies', async () => {
    const { body } = await api.post(connectPath);
    const path = `/v2/backend/${body.backend_id}/traffic`;
    const none = { backend_id: body.backend_id, requests: 0, bytes_in: 0, bytes_out: 0, open_connections: 0 };
    expect((await api.get(path)).body).toEqual({ ...none, counted_at: null });
    const counts = { requests: 2, receivedBytes: 30, sentBytes: 400, openConnections: 5 };
    const writtenAt = new Date();
    for (const [proxy, aliveForMs] of Object.entries({ alive: 60_000, dead: -1 })) {
      await api.store.insert(proxies, { id: proxy, aliveUntil: new Date(writtenAt.getTime() + aliveForMs) });
      await api.store.insert(traffic, { id: proxy, backend: body.backend_id, proxy, ...counts, writtenAt });
    }
    const sum = { requests: 4, bytes_in: 60, bytes_out: 800, open_connections: 5 };
    expect((await api.get(path)).body).toEqual({ ...none, ...sum, counted_at: writtenAt.toISOString() });
    expect((await api.get('/v2/backend/unknown/traffic')).status).toBe(404);
  });
});
