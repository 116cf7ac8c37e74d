// Takes about 6 s
/** Engines for tests, on a machine that may have its own engine. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand, tryCommand } from '../../../setup/command.ts';
import { endProcess } from '../machine/end-process.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { bridgeFile, canStartEngines, startEngine, withoutFirewall } from './docker-engine.ts';
import { testEngines } from './engines.ts';
import { removeLeftEngines } from './left-engines.ts';

const canStart = await canStartEngines();
const why = canStart ? '' : ' (skipped: no Docker Engine can be started here)';

/** The default bridge of an engine. */
const bridge = 'docker0';

test.skipIf(!canStart)(`an engine that restarts leaves the bridge of the machine's own engine${why}`, async () => {
  await using stack = new AsyncDisposableStack();
  const { code } = await tryCommand('ip', ['link', 'add', bridge, 'type', 'bridge']);
  if (code === 0) stack.defer(async () => void (await tryCommand('ip', ['link', 'delete', bridge])));
  const engines = await Promise.all(testEngines().map(async ({ kind }) => await startEngine(kind, withoutFirewall)));
  for (const engine of engines) {
    stack.use(engine);
    await engine.restart();
    expect(await tryCommand('ip', ['link', 'show', bridge])).toMatchObject({ code: 0 });
  }
});

test.skipIf(!canStart)(`an engine whose test was killed leaves nothing after its removal${why}`, async () => {
  await using folder = await temporaryFolder();
  const script = `
    const { startEngine, withoutFirewall } = await import('${join(import.meta.dirname, 'docker-engine.ts')}');
    console.log((await startEngine('stable', withoutFirewall)).host);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, TMPDIR: folder.path },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [host] = (await once(child.stdout, 'data')) as [Buffer];
  const env = { DOCKER_HOST: host.toString().trim() };
  const network = await runCommand('docker', ['network', 'create', 'left'], { env });
  await endProcess(child, 'SIGKILL');
  const [engine = ''] = await readdir(folder.path);
  const left = [await readFile(join(folder.path, engine, bridgeFile), 'utf8'), `br-${network.slice(0, 12)}`];
  const found = async () =>
    await Promise.all(left.map(async (each) => (await tryCommand('ip', ['link', 'show', each])).code));
  expect(await found()).toEqual([0, 0]);
  await removeLeftEngines(folder.path);
  expect(await found()).toEqual([1, 1]);
  expect(await readdir(folder.path)).toEqual([]);
});
