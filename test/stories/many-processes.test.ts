// Takes about 25 s
/** Two processes of every role, and two nodes with a Docker Engine each: if one process fails, the other serves. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { eventStream } from '../kit/platform/api-client.ts';
import { echo, openEcho } from '../kit/platform/echo.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { Fixture } from './fixture.ts';

const [engine, otherEngine] = testEngines();
const drivers = testDrivers().find((each) => each !== 'embedded');

describe.skipIf(!engine || !otherEngine || !drivers)('two processes of every role, on two engines', () => {
  let fixture: Fixture;

  beforeAll(async () => {
    if (!engine || !otherEngine || !drivers) return;
    fixture = await Fixture.open({ engine, drivers, twinsOn: otherEngine });
    await fixture.push('serve');
    await fixture.pushSample();
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  /** The same connection, through the other proxy. */
  function throughOther({ url }: ConnectResponse): string {
    const other = fixture.platform.announcedBy('proxy2').proxy_url;
    return url.replace(fixture.platform.proxyUrl, other);
  }

  async function nodesOf(connections: readonly ConnectResponse[]): Promise<Set<string>> {
    const containers = await Promise.all(connections.map((connection) => fixture.containerOf(connection)));
    return new Set(containers.map((container) => (container === '' ? 'the other engine' : 'the first engine')));
  }

  describe('with backends on both nodes', () => {
    const connections: ConnectResponse[] = [];

    // Connects, six at a time, until both nodes have a backend: a node that is busy for a moment may leave six to the other.
    beforeAll(async () => {
      while ((await nodesOf(connections)).size < 2) {
        const more = Array.from({ length: 6 }, async () => await fixture.connectReady('serve'));
        connections.push(...(await Promise.all(more)));
      }
    });

    test('spawns are spread over both nodes, and each backend answers through both proxies', async () => {
      expect(await nodesOf(connections)).toEqual(new Set(['the first engine', 'the other engine']));
      for (const connection of connections) {
        expect((await fetch(connection.url)).status).toBe(200);
        expect((await fetch(throughOther(connection))).status).toBe(200);
      }
    });

    test('every API process streams the logs of both nodes', async () => {
      const { token } = fixture.platform;
      for (const name of ['api', 'api2'] as const) {
        const access = { token, apiUrl: fixture.platform.announcedBy(name).api_url };
        for (const { backend_id: id } of connections) {
          const events = eventStream(access, `/v2/backend/${id}/logs/stream`);
          expect((await events.next()).value).toMatchObject({ data: 'serving' });
          await events.return(undefined);
        }
      }
    });
  });

  test('a node that other machines cannot reach logs which variable to set', async () => {
    // Each node logs this when it receives the next heartbeat of the other.
    const warnings = () => fixture.platform.log.match(/There are other nodes[^"]*set BERTH_ADVERTISED_HOST/g) ?? [];
    await expect.poll(warnings).toHaveLength(2);
  });

  test('a key stays on its node, through every API process', async () => {
    const { account, token } = fixture.platform;
    const ask = async (name: 'api' | 'api2') => {
      const base = fixture.platform.announcedBy(name).api_url;
      const answer = await fetch(`${base}/v2/service/${account}/serve/connect`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ key: 'one place' }),
      });
      return (await answer.json()) as ConnectResponse;
    };
    const connections = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i % 2 ? 'api' : 'api2')));
    expect(new Set(connections.map(({ backend_id: id }) => id)).size).toBe(1);
    expect(connections.filter(({ spawned }) => spawned)).toHaveLength(1);
  });

  test('a killed API, registry or proxy does not affect sessions through the others', async () => {
    const connection = await fixture.connectReady('pad');
    const socket = await openEcho(throughOther(connection));
    await fixture.platform.kill(['api', 'registry', 'proxy']);
    expect(await echo(socket)).toBe('still here');
    expect((await fetch(throughOther(connection))).status).toBe(200);
    const status = connection.status_url.replace(fixture.platform.apiUrl, fixture.platform.announcedBy('api2').api_url);
    expect(await (await fetch(status)).json()).toMatchObject({ status: 'ready' });
    socket.close();
    await fixture.platform.restart(['api', 'registry', 'proxy']);
    expect((await fetch(connection.url)).status).toBe(200);
  });

  test('the backends of a killed worker are adopted by its successor, with every key and URL', async () => {
    const connections = await Promise.all(
      Array.from({ length: 4 }, (_, i) => fixture.connectReady('serve', { key: `kept-${i}` })),
    );
    await fixture.platform.kill(['worker', 'worker2']);
    await fixture.platform.restart(['worker', 'worker2']);
    for (const [i, connection] of connections.entries()) {
      const again = await fixture.connect('serve', { key: `kept-${i}` });
      expect([again.spawned, again.backend_id]).toEqual([false, connection.backend_id]);
      expect((await fetch(connection.url)).status).toBe(200);
    }
    const [first] = connections;
    if (first) await fixture.terminate(first);
    if (first) await fixture.statusesUntil(first, 'terminated');
  });
});
