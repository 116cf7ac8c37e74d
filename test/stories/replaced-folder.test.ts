// Takes about 10 s
/** The data folder of a platform is deleted and recreated: the next start removes the containers and network of the old folder. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { tryCommand } from '../../setup/command.ts';
import { dataFolderIdentity } from '../../main/process/data-folder-identity.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { diskFolder } from '../kit/machine/disk-folder.ts';
import { removeFromEngine } from '../kit/engines/engine-client.ts';
import { Fixture, onlyIf } from './fixture.ts';

vi.stubEnv('TMPDIR', diskFolder());
// Other files run in this process, too.
afterAll(() => void vi.unstubAllEnvs());

const [engine] = testEngines();
const onDisk = await isOnDisk();

describe.skipIf(!engine)('a data folder that is replaced', () => {
  test.for(onlyIf(onDisk))(
    'its containers and its network are removed at the next start',
    { timeout: 180_000 },
    async () => {
      const at = { env: { DOCKER_HOST: engine?.host } };
      const inspect = async (...args: string[]) => (await tryCommand('docker', [...args], at)).code;
      // Without BERTH_NODE, the data folder determines the node's name.
      const fixture = await Fixture.open(
        { engine: engine ?? { kind: 'stable', host: '', version: '' }, drivers: 'embedded' },
        { BERTH_NODE: '' },
      );
      const { platform } = fixture;
      const nodeName = async () => (await readFile(join(platform.dataFolder, 'node'), 'utf8')).trim();
      const nodes = [await nodeName()];
      try {
        await fixture.push('serve');
        const container = await fixture.containerOf(await fixture.connectReady('serve'));
        expect(container).not.toBe('');
        await platform.stop();
        expect(await inspect('inspect', container)).toBe(0);
        await rm(platform.dataFolder, { recursive: true });
        await mkdir(platform.dataFolder, { mode: 0o700 });
        await platform.restart();
        nodes.push(await nodeName());
        expect(nodes[1]).not.toBe(nodes[0]);
        expect(await inspect('inspect', container)).not.toBe(0);
        expect(await inspect('network', 'inspect', `berth-${nodes[0]}`)).not.toBe(0);
        expect(await inspect('network', 'inspect', `berth-${nodes[1]}`)).toBe(0);
      } finally {
        await fixture[Symbol.asyncDispose]();
        for (const node of nodes) await removeFromEngine(engine, node);
      }
    },
  );
});

/** Whether data folders have an identity, which a folder in memory has not. */
async function isOnDisk(): Promise<boolean> {
  const dataFolder = await mkdtemp(join(tmpdir(), 'berth-place-'));
  const identity = await dataFolderIdentity({ dataFolder, dataFolderId: '' });
  await rm(dataFolder, { recursive: true });
  return identity !== undefined;
}
