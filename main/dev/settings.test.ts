import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readDevSettings } from './settings.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-dev-settings-'));
  await mkdir(join(folder, 'app'));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

async function read(file: object | string | undefined, ...args: string[]) {
  const path = join(folder, 'app/berth.config.json');
  await rm(path, { force: true });
  if (file !== undefined) await writeFile(path, typeof file === 'string' ? file : JSON.stringify(file));
  return await readDevSettings(args, join(folder, 'app'));
}

test('the default is the Dockerfile of the current folder, on port 8080 of this machine', async () => {
  const build = {
    dockerfile: join(folder, 'app/Dockerfile'),
    context: join(folder, 'app'),
    target: undefined,
    buildArgs: [],
  };
  expect(await read(undefined)).toEqual({
    source: { build },
    port: 8080,
    host: '127.0.0.1',
    watch: true,
    output: 'screen',
  });
});

test('flags override the file, and paths in the file are relative to it', async () => {
  const file = {
    dockerfile: 'deploy/Dockerfile',
    context: '..',
    target: 'a',
    port: 1,
    watch: false,
    build_args: { A: '1' },
  };
  const flags = ['--target', 'b', '-p', '0', '--host', '::1', '--watch', '--build-arg', 'A=2'];
  const build = {
    dockerfile: join(folder, 'app/deploy/Dockerfile'),
    context: folder,
    target: 'b',
    buildArgs: ['A=1', 'A=2'],
  };
  expect(await read(file, ...flags)).toEqual({
    source: { build },
    port: 0,
    host: '::1',
    watch: true,
    output: 'screen',
  });
  expect(await read(file, '--image', 'nginx')).toMatchObject({ source: { image: 'nginx' }, watch: false });
  const other = await read({ image: 'nginx' }, '--file', 'Other');
  expect(other).toMatchObject({ source: { build: { dockerfile: join(folder, 'app/Other') } } });
});

test.each([
  [undefined, ['--port', '65536'], '--port: Use a number from 0 to 65535'],
  [undefined, ['--prot', '1'], "Unknown option '--prot'"],
  [undefined, ['-i', 'a', '-f', 'b'], 'Use either --image or the options of a build'],
  [undefined, ['-i', 'a', '--build-arg', 'B=1'], 'Use either --image or the options of a build'],
  [undefined, ['--config', 'missing.json'], 'missing.json: It cannot be read (ENOENT)'],
  ['{', [], 'berth.config.json: It is not valid JSON'],
  [{ port: '1', prot: 1 }, [], '  port: Invalid input: expected number'],
  [{ prot: 1 }, [], 'Unrecognized key: "prot"'],
  [{ image: 'a', dockerfile: 'b' }, [], '  image: Use either `image` or `dockerfile`'],
])('%j with %j: %s', async (file, args, message) => {
  await expect(read(file, ...args)).rejects.toThrow(message);
});
