// Runs on every engine
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../core/log/log.ts';
import { newBackendId } from '../../model/ids.ts';
import { nameSuffix } from '../testing/test-engine.ts';
import { openTestPlatform, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import type { ContainerSpec, Containers } from './containers.ts';
import { openEngine } from './engine.ts';

/** The limit is more than some engines may set. */
const common = { openFilesLimit: 1_048_576, nameSuffix, log: silentLog() };

/** A server that answers like an engine with this version and description. */
async function openFakeEngine(version: object, info: object): Promise<AsyncDisposable & { host: string }> {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.url?.endsWith('/version') ? version : info));
  });
  const folder = await mkdtemp(join(tmpdir(), 'berth-fake-engine-'));
  const path = join(folder, 'docker.sock');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    host: `unix://${path}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true });
    },
  };
}

describe('openEngine', () => {
  const unsupported = [
    ['an engine that is too old', { Version: '19.03.1', ApiVersion: '1.40' }, {}, 'too old, use 20.10 or newer'],
    [
      'Docker Desktop',
      { Version: '28.0.0', ApiVersion: '1.48' },
      { OperatingSystem: 'Docker Desktop' },
      'use a Docker Engine on Linux',
    ],
    [
      'a rootless engine',
      { Version: '28.0.0', ApiVersion: '1.48' },
      { SecurityOptions: ['name=seccomp,profile=default', 'name=rootless'] },
      'use one that runs as root',
    ],
  ] as const;

  it.each(unsupported)('refuses %s with a message that says what to do', async (_what, version, info, sentence) => {
    await using fake = await openFakeEngine(version, info);
    await expect(openEngine({ ...common, host: fake.host, node: 'n' })).rejects.toThrow(sentence);
  });

  it('reports that no engine answers', async () => {
    await expect(openEngine({ ...common, host: 'unix:///no/such.sock', node: 'n' })).rejects.toThrow(
      'No Docker Engine answers at unix:///no/such.sock',
    );
  });
});

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`containers ${why ?? ''}`, () => {
  let platform: TestPlatform;
  let containers: Containers;
  let spec: ContainerSpec;
  beforeAll(async () => {
    platform = await openTestPlatform(undefined, { openFilesLimit: common.openFilesLimit });
    containers = platform.engine.engine.containers;
    const digest = await platform.images.add('exec sleep 86400');
    await platform.pull(digest);
    spec = {
      backend: newBackendId(),
      image: `${platform.images.host}/acme/draw@${digest}`,
      address: platform.engine.engine.network.addresses.assign(),
      env: {},
      labels: {},
      pidsLimit: 64,
      capabilities: ['CHOWN'],
    };
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
  });

  it('are created, run and are removed, and repeated calls do no harm', async () => {
    const left = await containers.create(spec);
    const id = await containers.create(spec);
    expect(await containers.inspect(left)).toBeUndefined();
    expect(await containers.list()).toEqual([{ id, backend: spec.backend, phase: 'created' }]);
    await containers.start(id).catch((error: { code?: string }) => expect(error.code).toBe('adjusted'));
    await containers.start(await containers.create(spec));
    const [running] = await containers.list();
    if (!running) throw new Error('The container does not run');
    expect(await containers.inspect(running.id)).toMatchObject({ phase: 'running', address: spec.address });
    expect(await containers.cpuNanoseconds(running.id)).toBeGreaterThan(0);
    await containers.signal(running.id, 'SIGKILL');
    await platform.engine.docker.getContainer(running.id).wait();
    await containers.signal(running.id, 'SIGKILL');
    expect(await containers.inspect(running.id)).toMatchObject({ phase: 'exited', exitCode: 137, pid: 0 });
    await containers.remove(running.id);
    await containers.remove(running.id);
    await containers.signal(running.id, 'stop');
    expect(await containers.inspect(running.id)).toBeUndefined();
  });

  it('cannot be created from a missing image', async () => {
    const image = `${platform.images.host}/acme/draw@sha256:${'1'.repeat(64)}`;
    await expect(containers.create({ ...spec, image })).rejects.toMatchObject({ code: 'no-image' });
  });

  it('cannot share an address', async () => {
    const start = async (backend: string) => {
      const id = await containers.create({ ...spec, backend });
      await containers.start(id);
    };
    await start(newBackendId());
    await expect(start(newBackendId())).rejects.toMatchObject({ code: 'address-taken' });
  });

  it('are on a network that persists when the engine is opened again', async () => {
    const { docker } = platform.engine;
    const before = await docker.getNetwork(`berth-${platform.node}`).inspect();
    const host = process.env['DOCKER_HOST'];
    await using again = await openEngine({ ...common, ...(host !== undefined && { host }), node: platform.node });
    expect(await docker.getNetwork(again.network.name).inspect()).toEqual(before);
    expect(again.network.addresses.assign()).not.toBe(spec.address);
  });
});
