// Takes about 30 s
/** Nodes that ran a service have its new image before the next connect. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { tryCommand } from '../../setup/command.ts';
import { api } from '../kit/platform/api-client.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { onAllDrivers, Fixture } from './fixture.ts';

/** Pushes another version of the service `serve`. */
async function push(fixture: Fixture, version: string, tag?: string): Promise<string> {
  return await fixture.pushOnly('serve', `${fixture.platform.node}-${version}`, tag);
}

/** Whether an engine has an image of the service `serve`, under the name that nodes pull. */
async function isOn(engine: TestEngine, { platform }: Fixture, digest: string): Promise<boolean> {
  const name = `${platform.registry}/${platform.account}/serve@${digest}`;
  const { code } = await tryCommand('docker', ['image', 'inspect', name], { env: { DOCKER_HOST: engine.host } });
  return code === 0;
}

/** Lines of the log with a message and the value of a field. */
function lines({ platform }: Fixture, message: string, value: string): string[] {
  return platform.log.split('\n').filter((line) => line.includes(`"${message}"`) && line.includes(value));
}

const prefetched = (fixture: Fixture, digest: string) => lines(fixture, 'Image prefetched', digest);
const pulled = (fixture: Fixture, { backend_id: id }: ConnectResponse) => lines(fixture, 'Image pulled', id);

/** Asserts that a backend runs this image, and that its node did not pull it for the backend. */
async function expectReadyAtOnce(fixture: Fixture, connection: ConnectResponse, digest: string): Promise<void> {
  const { image_digest: spawned, statuses } = await fixture.backend(connection);
  expect(spawned).toBe(digest);
  expect(statuses.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'starting', 'waiting', 'ready']);
  expect(pulled(fixture, connection)).toEqual([]);
}

onAllDrivers((setting) => {
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await Fixture.open({ ...setting, only: ['registry,api', 'worker'] });
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  test('a node that ran the previous version has a pushed version before the next connect', async () => {
    const first = await push(fixture, 'first');
    const connection = await fixture.connectReady('serve');
    await expect.poll(() => pulled(fixture, connection)).toHaveLength(1);
    expect(prefetched(fixture, first)).toEqual([]);

    const second = await push(fixture, 'second');
    await expect.poll(() => prefetched(fixture, second)).toHaveLength(1);
    expect(await isOn(setting.engine, fixture, second)).toBe(true);
    await expectReadyAtOnce(fixture, await fixture.connectReady('serve'), second);
  });

  test('a node prefetches a tag when an environment is changed to it, and not when it is pushed', async () => {
    const digest = await push(fixture, 'third', 'v3');
    const path = `/v2/service/${fixture.platform.account}/serve/update`;
    const { status } = await api(fixture.platform, path, { method: 'POST', body: JSON.stringify({ image_tag: 'v3' }) });
    expect(status).toBe(200);
    await expect.poll(() => prefetched(fixture, digest)).toHaveLength(1);
    expect(lines(fixture, 'Nodes prefetch an image', digest)).toHaveLength(1);
    await expectReadyAtOnce(fixture, await fixture.connectReady('serve'), digest);
  });
});

const [engine, otherEngine] = testEngines();
const drivers = testDrivers().find((each) => each !== 'embedded');

describe.skipIf(!engine || !otherEngine || !drivers)('two processes with the API, and nodes on two engines', () => {
  let fixture: Fixture;

  beforeAll(async () => {
    if (!engine || !otherEngine || !drivers) return;
    const only = ['registry', 'api', 'api2', 'worker', 'worker2'] as const;
    fixture = await Fixture.open({ engine, drivers, twinsOn: otherEngine, only });
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  test('both nodes have a pushed version before the next connect, and each pulled it once', async () => {
    await push(fixture, 'first');
    await connectOnBoth();
    const second = await push(fixture, 'second');
    await expect.poll(() => prefetched(fixture, second)).toHaveLength(2);
    // Both API processes were notified of the push.
    await expect.poll(() => lines(fixture, 'Nodes prefetch an image', second)).toHaveLength(2);
    for (const each of [engine, otherEngine]) expect(each && (await isOn(each, fixture, second))).toBe(true);
    // Stops the registry, so that no node can pull.
    await fixture.platform.kill(['registry']);
    for (const connection of await connectOnBoth()) await expectReadyAtOnce(fixture, connection, second);
    expect(prefetched(fixture, second)).toHaveLength(2);
  });

  /** Connects until both nodes have a backend. */
  async function connectOnBoth(): Promise<ConnectResponse[]> {
    const connections: ConnectResponse[] = [];
    const nodes = new Set<boolean>();
    while (nodes.size < 2) {
      const more = await Promise.all(Array.from({ length: 4 }, () => fixture.connectReady('serve')));
      const containers = await Promise.all(more.map((connection) => fixture.containerOf(connection)));
      for (const container of containers) nodes.add(container === '');
      connections.push(...more);
    }
    return connections;
  }
});
