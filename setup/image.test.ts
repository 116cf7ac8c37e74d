import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract } from 'tar-stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { testEngines } from '../test/kit/engines/engines.ts';
import { runCommand } from './command.ts';
import { imageId, packImage } from './image.ts';
import type { Image } from './image.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-image-test-'));
});

afterEach(async () => await rm(folder, { recursive: true }));

test('the same input gives the same bytes, regardless of the order of entries and the age of files', async () => {
  const file = join(folder, 'program');
  await writeFile(file, 'content', { mode: 0o755 });
  const first = await buffer(packImage(imageOf(file)));
  await utimes(file, new Date(0), new Date(0));
  const again = imageOf(file);
  const second = await buffer(packImage({ ...again, layers: again.layers.map((layer) => layer.toReversed()) }));
  expect(first.equals(second)).toBe(true);
  expect(await imageId(again)).toBe(idIn(first));
  await writeFile(file, 'another');
  expect(await imageId(again)).not.toBe(idIn(first));
});

test('a layer contains files, links and folders with their modes, and each folder precedes its content', async () => {
  const file = join(folder, 'program');
  await writeFile(file, 'content', { mode: 0o755 });
  const archive = await entriesOf(packImage(imageOf(file)));
  const layer = [...archive].find(([name]) => name.endsWith('.tar'));
  const entries = await entriesOf(Readable.from([layer?.[1].body ?? Buffer.alloc(0)]));
  const seen = [...entries].map(([name, { type, mode, body }]) => [name, type, mode?.toString(8), body.toString()]);
  expect(seen).toEqual([
    ['bin/', 'directory', '755', ''],
    ['bin/alias', 'symlink', '777', ''],
    ['bin/program', 'file', '755', 'content'],
    ['etc/', 'directory', '755', ''],
    ['etc/name', 'file', '600', 'berth'],
    ['tmp/', 'directory', '1777', ''],
  ]);
});

test('a missing file fails the stream', async () => {
  await expect(buffer(packImage(imageOf(join(folder, 'missing'))))).rejects.toThrow('ENOENT');
});

test.each(testEngines())('Docker Engine $version ($kind) loads it, and reports the predicted ID', async ({ host }) => {
  const file = join(folder, 'program');
  await writeFile(file, 'content', { mode: 0o755 });
  const image = imageOf(file);
  const at = { env: { DOCKER_HOST: host } };
  await runCommand('docker', ['load'], { ...at, input: packImage(image) });
  try {
    const id = await runCommand('docker', ['image', 'inspect', '--format', '{{.Id}}', image.tag], at);
    expect(id.trim()).toBe(await imageId(image));
  } finally {
    await runCommand('docker', ['image', 'rm', image.tag], at);
  }
});

function imageOf(file: string): Image {
  return {
    tag: 'berth-test/packed:latest',
    layers: [
      [
        { path: '/tmp', folder: true, mode: 0o1777 },
        { path: '/bin/program', file },
        { path: '/etc/name', text: 'berth', mode: 0o600 },
        { path: '/bin/alias', link: 'program' },
      ],
    ],
    config: { Cmd: ['/bin/program'] },
  };
}

/** The ID of the image in an archive, which is the name of its configuration. */
function idIn(archive: Buffer): string {
  return `sha256:${/([0-9a-f]{64})\.json/.exec(archive.toString('latin1'))?.[1]}`;
}

async function entriesOf(archive: Readable) {
  const found = new Map<string, { type: string | undefined | null; mode: number | undefined; body: Buffer }>();
  const parser = extract();
  const parsed = pipeline(archive, parser);
  for await (const entry of parser) {
    const { name, type, mode } = entry.header;
    found.set(name, { type, mode, body: await buffer(entry) });
  }
  await parsed;
  return found;
}
