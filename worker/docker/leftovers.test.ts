// Takes about 15 s
// Runs on every engine
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../core/log/log.ts';
import { newBackendId } from '../../model/ids.ts';
import { possibleOpenFiles } from '../../test/kit/machine/open-files.ts';
import { nameSuffix, oneOnFirstEngine, testEngineHost } from '../testing/test-engine.ts';
import { openTestPlatform, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import { openEngine } from './engine.ts';
import type { Engine } from './engine.ts';
import type { DataFolderIdentity } from './labels.ts';

const common = { host: testEngineHost, openFilesLimit: possibleOpenFiles(), nameSuffix, log: silentLog() };

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`leftovers of a replaced data folder ${why ?? ''}`, () => {
  let platform: TestPlatform;
  let image: string;
  const opened: AsyncDisposable[] = [];
  const networks: string[] = [];
  beforeAll(async () => {
    platform = await openTestPlatform();
    const digest = await platform.images.add('exec sleep 86400');
    await platform.pull(digest);
    image = `${platform.images.host}/acme/draw@${digest}`;
  });
  afterAll(async () => {
    for (const engine of opened) await engine[Symbol.asyncDispose]();
    const { docker } = platform.engine;
    for (const label of networks.map((name) => `berth.node=${name.slice('berth-'.length)}`)) {
      for (const { Id } of await docker.listContainers({ all: true, filters: { label: [label] } })) {
        await docker.getContainer(Id).remove({ force: true, v: true });
      }
    }
    for (const name of networks)
      await docker
        .getNetwork(name)
        .remove()
        .catch(() => {});
    await platform?.[Symbol.asyncDispose]();
  });

  /** Opens the engine as a platform does at its start. */
  async function open(
    node: string,
    { ownsFolder, ...dataFolder }: Partial<DataFolderIdentity> & { readonly ownsFolder?: boolean } = {},
  ): Promise<Engine> {
    const all = { location: `/dev/none:/${randomUUID()}`, id: randomUUID(), isAlive: async () => false, ...dataFolder };
    const engine = await openEngine({ ...common, node, dataFolder: all, ownsFolder });
    opened.push(engine);
    networks.push(engine.network.name);
    return engine;
  }

  async function startContainer({ containers, network }: Engine): Promise<string> {
    const address = network.addresses.assign();
    const spec = { backend: newBackendId(), image, address, env: {}, labels: {}, pidsLimit: 64, capabilities: [] };
    const id = await containers.create(spec);
    await containers.start(id);
    return id;
  }

  /** Whether the engine has the container and the network of a node. */
  async function has(container: string, { network }: Engine): Promise<[boolean, boolean]> {
    const { docker } = platform.engine;
    const there = async (asked: Promise<unknown>) =>
      await asked.then(
        () => true,
        () => false,
      );
    return [
      await there(docker.getContainer(container).inspect()),
      await there(docker.getNetwork(network.name).inspect()),
    ];
  }

  const newNode = () => `left-${randomUUID().slice(0, 8)}`;

  it('are removed when a platform starts whose data folder is at the same place', async () => {
    const location = `/dev/none:/${randomUUID()}`;
    const before = await open(newNode(), { location });
    const container = await startContainer(before);
    const after = await open(newNode(), { location });
    expect(await has(container, before)).toEqual([false, false]);
    expect(await has(await startContainer(after), after)).toEqual([true, true]);
  });

  it.for(oneOnFirstEngine)('are removed when the only node of the folder was renamed', async () => {
    const [location, id] = [`/dev/none:/${randomUUID()}`, randomUUID()];
    const before = await open(newNode(), { location, id, ownsFolder: true });
    const container = await startContainer(before);
    const isAlive = async (asked: string) => asked === id;
    await open(newNode(), { location, id, isAlive, ownsFolder: true });
    expect(await has(container, before)).toEqual([false, false]);
  });

  it.for(oneOnFirstEngine)('stay while a process uses that folder, even if it was moved', async () => {
    const [location, id] = [`/dev/none:/${randomUUID()}`, randomUUID()];
    const living = await open(newNode(), { location, id });
    const container = await startContainer(living);
    await open(newNode(), { location, isAlive: async (asked) => asked === id });
    expect(await has(container, living)).toEqual([true, true]);
  });

  it.for(oneOnFirstEngine)(
    'do not include containers of a data folder elsewhere, or of another node of the same folder',
    async () => {
      const [location, id] = [`/dev/none:/${randomUUID()}`, randomUUID()];
      const elsewhere = await open(newNode());
      const beside = await open(newNode(), { location, id });
      const containers = [await startContainer(elsewhere), await startContainer(beside)] as const;
      await open(newNode(), { location, id });
      expect(await has(containers[0], elsewhere)).toEqual([true, true]);
      expect(await has(containers[1], beside)).toEqual([true, true]);
    },
  );

  it.for(oneOnFirstEngine)('are left to the worker, which reads the store, if the node kept its name', async () => {
    const [location, node] = [`/dev/none:/${randomUUID()}`, newNode()];
    const before = await open(node, { location });
    const container = await startContainer(before);
    await open(node, { location });
    expect(await has(container, before)).toEqual([true, true]);
  });
});
