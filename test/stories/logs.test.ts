// Takes about 50 s
/** Logs and metrics of backends: followed while they run, and read after they have ended, with authorization only. */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { metricsRecord, trafficObject } from '../../contract/backend.ts';
import type { ConnectResponse } from '../../contract/connect.ts';
import { api, eventStream } from '../kit/platform/api-client.ts';
import type { StreamEvent } from '../kit/platform/api-client.ts';
import { onAllDrivers, Fixture, onlyIf } from './fixture.ts';

onAllDrivers((setting) => {
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await Fixture.open(setting, { BERTH_STOP_GRACE_SECONDS: '10' });
    await fixture.push('serve');
    await fixture.push('failing');
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  const pathOf = ({ backend_id: id }: { backend_id: string }) => `/v2/backend/${id}/logs/stream`;
  const log = (backend: { backend_id: string }, lastEventId?: string) =>
    eventStream(fixture.platform, pathOf(backend), {
      signal: AbortSignal.timeout(90_000),
      ...(lastEventId !== undefined && { lastEventId }),
    });

  async function wholeLog(backend: { backend_id: string }, lastEventId?: string): Promise<StreamEvent[]> {
    return await rest(log(backend, lastEventId));
  }

  async function rest(events: AsyncGenerator<StreamEvent>): Promise<StreamEvent[]> {
    const all: StreamEvent[] = [];
    for await (const event of events) all.push(event);
    return all;
  }

  const wordsOf = (events: readonly StreamEvent[]) => events.map(({ data }) => data);

  const containerOf = async ({ backend_id: id }: { backend_id: string }) =>
    await fixture.docker('ps', '--all', '--quiet', '--filter', `label=berth.backend=${id}`);

  /** Starts to follow a log, and reads nothing. */
  async function followWithoutReading(backend: { backend_id: string }): Promise<Socket> {
    const { hostname, port } = new URL(fixture.platform.apiUrl);
    const socket = connect(Number(port), hostname).pause();
    const head = [`GET ${pathOf(backend)} HTTP/1.1`, 'host: berth', `authorization: Bearer ${fixture.platform.token}`];
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    await once(socket, 'readable');
    return socket;
  }

  async function next(events: AsyncGenerator<StreamEvent>): Promise<string | undefined> {
    const { value } = await events.next();
    return value === undefined ? undefined : value.data;
  }

  /** A backend that has logged a few lines and ended. */
  async function endedJustNow(): Promise<ConnectResponse> {
    const connection = await fixture.connectReady('serve');
    await fetch(`${connection.url}cgi-bin/say?last`);
    const ended = fixture.statusesUntil(connection, 'terminated');
    await fixture.terminate(connection);
    await ended;
    return connection;
  }

  /** Its log, once its container is removed. */
  async function logWithoutContainer(ended: ConnectResponse): Promise<string[]> {
    await expect.poll(() => containerOf(ended), { interval: 250 }).toBe('');
    return wordsOf(await wholeLog(ended));
  }

  test('a log can be followed before the container exists, resumed, and read after the backend has ended', async () => {
    const connection = await fixture.connect('serve');
    const follower = log(connection);
    expect(await next(follower)).toBe('serving');
    await fetch(`${connection.url}cgi-bin/say?one`);
    expect(await next(follower)).toBe('one');
    // A later reader receives earlier lines, too.
    const second = log(connection);
    expect([await next(second), await next(second)]).toEqual(['serving', 'one']);
    await fetch(`${connection.url}cgi-bin/say?two`);
    expect([await next(follower), await next(second)]).toEqual(['two', 'two']);
    await fixture.terminate(connection);
    const ends = [wordsOf(await rest(follower)), wordsOf(await rest(second))];
    expect(ends).toEqual([['bye'], ['bye']]);
    await fixture.statusesUntil(connection, 'terminated');
    await expect.poll(() => containerOf(connection), { interval: 250 }).toBe('');
    const kept = await wholeLog(connection);
    expect(wordsOf(kept)).toEqual(['serving', 'one', 'two', 'bye']);
    expect(wordsOf(await wholeLog(connection, kept[1]?.id))).toEqual(['two', 'bye']);
    expect(await wholeLog(connection, kept[3]?.id)).toEqual([]);
  });

  test('the log of a backend that failed to start can be read', async () => {
    const connection = await fixture.connect('failing');
    expect(wordsOf(await wholeLog(connection))).toEqual(['This backend cannot go on']);
    await fixture.statusesUntil(connection, 'terminated');
    expect(wordsOf(await wholeLog(connection))).toEqual(['This backend cannot go on']);
  });

  // With separate processes, only the worker is killed: see below.
  test.for(onlyIf(setting.drivers === 'embedded'))(
    'a log is complete even if the platform is killed right after the backend ended',
    async () => {
      const connection = await endedJustNow();
      await fixture.platform.kill();
      await fixture.platform.restart();
      expect(await logWithoutContainer(connection)).toEqual(['serving', 'last', 'bye']);
    },
  );

  test('a client that reads nothing does not delay others', async () => {
    const connection = await fixture.connectReady('serve');
    const stalled = await followWithoutReading(connection);
    // More than the buffers between container and client hold.
    await fetch(`${connection.url}cgi-bin/flood?20000000`);
    await fetch(`${connection.url}cgi-bin/say?done`);
    let last: string | undefined;
    for await ({ data: last } of log(connection)) if (last === 'done') break;
    expect(last).toBe('done');
    stalled.destroy();
    await fixture.terminate(connection, true);
  });

  test('metrics are streamed while a backend runs', async () => {
    const connection = await fixture.connect('serve');
    const path = `/v2/backend/${connection.backend_id}/metrics/stream`;
    const events: StreamEvent[] = [];
    for await (const event of eventStream(fixture.platform, path, { signal: AbortSignal.timeout(90_000) })) {
      events.push(event);
      if (events.length === 2) await fixture.terminate(connection, true);
    }
    expect(events.slice(0, 2).map(({ id }) => id)).toEqual(['0', '1']);
    for (const { data } of events) {
      const record = metricsRecord.parse(JSON.parse(data));
      expect(record.backend_id).toBe(connection.backend_id);
      expect(record.mem_limit).toBe(1024 ** 3);
      expect(record.mem_available).toBe(record.mem_limit - record.mem_used);
      expect(record.mem_used).toBeGreaterThan(0);
      // A second of all cores, on a machine that may be busy.
      expect(record.sys_cpu / availableParallelism()).toBeGreaterThan(0.5e9);
      expect(record.sys_cpu / availableParallelism()).toBeLessThan(20e9);
    }
    await fixture.statusesUntil(connection, 'terminated');
    expect(await rest(eventStream(fixture.platform, path))).toEqual([]);
  });

  test('the traffic of a backend is counted, and reported within seconds', async () => {
    const connection = await fixture.connectReady('serve');
    const { length } = await (await fetch(connection.url)).text();
    await vi.waitFor(
      async () => {
        const answer = await api(fixture.platform, `/v2/backend/${connection.backend_id}/traffic`);
        const counted = trafficObject.parse(await answer.json());
        expect(counted).toMatchObject({ backend_id: connection.backend_id, open_connections: 0 });
        expect(counted.requests).toBeGreaterThan(0);
        expect(counted.bytes_out).toBeGreaterThan(length);
      },
      { timeout: 45_000, interval: 500 },
    );
    await fixture.terminate(connection, true);
  });

  test.for(onlyIf(setting.drivers !== 'embedded'))(
    'while its node is down, reading a log fails with an error; the log of a backend that ended right before is complete',
    async () => {
      const connection = await fixture.connectReady('serve');
      const follower = log(connection);
      expect(await next(follower)).toBe('serving');
      const ending = rest(follower).then(
        () => 'ended',
        () => 'broken',
      );
      const ended = await endedJustNow();
      await fixture.platform.kill(['worker']);
      expect(await ending).toBe('broken');
      const rejected = await api(fixture.platform, pathOf(connection));
      expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([503, '2']);
      expect(await rejected.json()).toMatchObject({ error: { code: 'Unavailable' } });
      await fixture.platform.restart(['worker']);
      expect(await next(log(connection))).toBe('serving');
      expect(await logWithoutContainer(ended)).toEqual(['serving', 'last', 'bye']);
      await fixture.terminate(connection, true);
    },
  );

  // With separate processes, the process that stops first determines how the stream ends.
  test.for(onlyIf(setting.drivers === 'embedded'))('a platform that stops ends its streams', async () => {
    const connection = await fixture.connectReady('serve');
    const follower = log(connection);
    expect(await next(follower)).toBe('serving');
    const [events, code] = await Promise.all([rest(follower), fixture.platform.stop()]);
    expect([events, code]).toEqual([[], 0]);
    await fixture.platform.restart();
    await fixture.terminate(connection, true);
  });

  test('a log requires an existing backend and a valid token', async () => {
    const connection = await fixture.connectReady('serve');
    const absent = await api(fixture.platform, pathOf({ backend_id: 'nosuchbackend' }));
    expect(absent.status).toBe(404);
    const unauthorized = await api(fixture.platform, pathOf(connection), {
      headers: { authorization: 'Bearer guessed' },
    });
    expect(unauthorized.status).toBe(401);
    await Promise.all([absent.text(), unauthorized.text()]);
    await fixture.terminate(connection, true);
  });
});
