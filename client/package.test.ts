// Takes about 8 s
/** The published package: packed, installed in an empty project, run by plain Node and read by the compiler. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { becomeServing, openTestApi } from '../api/testing/test-api.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..');
let folder: string;
let project: string;
let packed: string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-client-'));
  project = join(folder, 'project');
  await run(process.execPath, [join(import.meta.dirname, 'build.ts'), join(folder, 'dist')]);
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: join(folder, 'dist') });
  const listing: unknown = JSON.parse(stdout);
  // Releases of npm differ in the shape of the list.
  const [made] = Object.values(listing as object) as { filename: string; files: { path: string }[] }[];
  if (!made) throw new Error(`npm packed nothing: ${stdout}`);
  packed = made.files.map(({ path }) => path);
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{"private":true,"type":"module"}');
  await run('npm', ['install', '--offline', '--no-audit', join(folder, made.filename)], { cwd: project });
});
afterAll(() => rm(folder, { recursive: true }));

test('contains code, types and nothing else', () => {
  const others = packed.filter((path) => !/^[a-z-]+\.(?:js|d\.ts)$/.test(path));
  expect(others.toSorted()).toEqual(['LICENSE', 'README.md', 'package.json']);
});

test('needs no other package, and no API of Node', async () => {
  const installed = JSON.parse(await readFile(join(project, 'package-lock.json'), 'utf8')) as { packages: object };
  expect(Object.keys(installed.packages)).toEqual(['', 'node_modules/berth-client']);
  const code = await Promise.all(
    packed
      .filter((path) => path.endsWith('.js'))
      .map((path) => readFile(join(project, 'node_modules/berth-client', path), 'utf8')),
  );
  const imported = code.flatMap((text) => Array.from(text.matchAll(/ from '([^']+)'/g), ([, target]) => target));
  expect(imported.filter((target) => !/^\.\/[a-z-]+\.js$/.test(target ?? ''))).toEqual([]);
  expect(code.filter((text) => /\b(?:process|Buffer|require|__dirname)\b/.test(text))).toEqual([]);
});

test('runs under plain Node', async () => {
  await using api = await openTestApi();
  await writeFile(
    join(project, 'use.js'),
    `import { BerthClient, BerthError } from 'berth-client';
const berth = new BerthClient({ url: process.argv[2], token: process.argv[3] });
const { backend_id: backend } = await berth.connect('acme/draw', { key: 'room-1' });
console.log(backend);
console.log((await berth.waitUntilReady(backend)).status);
const error = await berth.status('none').catch((thrown) => thrown);
console.log(error instanceof BerthError, error.code);
`,
  );
  const running = run(process.execPath, ['use.js', api.base, api.token], { cwd: project });
  let text = '';
  running.child.stdout?.on('data', (data: Buffer) => (text += data.toString()));
  await expect.poll(() => text).toMatch(/^[a-z0-9]{18}\n/);
  const backend = text.trim();
  await api.change(backend, becomeServing);
  expect((await running).stdout).toBe(`${backend}\nready\ntrue BackendNotFound\n`);
});

test.each([
  ['nodenext', 'nodenext'],
  ['bundler', 'esnext'],
])('has types that the compiler accepts with the module resolution %s', async (moduleResolution, module) => {
  await writeFile(
    join(project, 'use.ts'),
    `import { BerthClient, BerthError } from 'berth-client';
import type { BackendStatus, ConnectRequest } from 'berth-client';
const request: ConnectRequest = { key: 'room-1', spawn: { max_idle_seconds: 60 } };
export async function use(signal: AbortSignal): Promise<BackendStatus['status']> {
  const berth = new BerthClient({ url: 'https://berth.example', token: 'secret' });
  const { backend_id } = await berth.connect('acme/draw', request, { signal });
  for await (const { line } of berth.logs(backend_id)) line.toUpperCase();
  // @ts-expect-error -- there is no such field
  await berth.connect('acme/draw', { keys: 'room-1' });
  return (await berth.waitUntilReady(backend_id)).status;
}
export const isKeyFree = (error: unknown) => error instanceof BerthError && error.code === 'KeyNotHeld';
`,
  );
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--lib', 'es2022,dom', '--types', ''];
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const resolution = ['--moduleResolution', moduleResolution, '--module', module];
  const compiling = run(process.execPath, [compiler, ...options, ...resolution, 'use.ts'], { cwd: project });
  await expect(compiling).resolves.toEqual({ stdout: '', stderr: '' });
});
