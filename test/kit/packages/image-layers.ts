/** Layers of test images with many files. They are packed once, and cached for later runs: compressing a gigabyte takes a minute. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { cached } from './cached.ts';

/** A layer as a registry stores it. */
export interface PackedLayer {
  /** A tar, compressed with gzip. */
  readonly file: string;
  /** The digest of the file. */
  readonly digest: string;
  readonly sizeBytes: number;
  /** The digest of the tar. */
  readonly diffId: string;
}

/** The content of a layer, and its unique name. */
export interface LayerContent {
  readonly name: string;
  /** Prints the tar. */
  readonly command: readonly [program: string, ...args: string[]];
}

/** Upper bound on the length of an error message. */
const maxErrorLength = 2_000;

/** Packs a layer, unless an earlier run has packed it. */
export async function packedLayer({ name, command }: LayerContent): Promise<PackedLayer> {
  const folder = await cached(`layer-${name}`, async (making) => {
    const about = await pack(command, join(making, 'layer.tar.gz'));
    await writeFile(join(making, 'about.json'), JSON.stringify(about));
  });
  const about = JSON.parse(await readFile(join(folder, 'about.json'), 'utf8')) as Omit<PackedLayer, 'file'>;
  return { ...about, file: join(folder, 'layer.tar.gz') };
}

async function pack([program, ...args]: LayerContent['command'], file: string): Promise<Omit<PackedLayer, 'file'>> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const problem = textOf(child.stderr);
  const exited = once(child, 'exit');
  const [tar, packed] = [counter(), counter()];
  // The fastest compression, because most of the bytes are read once, on this machine.
  await pipeline(child.stdout, tar.stream, createGzip({ level: 1 }), packed.stream, createWriteStream(file));
  const [code] = (await exited) as [number | null];
  if (code !== 0) throw new Error(`${program} failed: ${await problem}`);
  return { digest: packed.digest(), sizeBytes: packed.sizeBytes(), diffId: tar.digest() };
}

function counter() {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    sizeBytes += chunk.length;
  });
  return { stream, digest: () => `sha256:${hash.digest('hex')}`, sizeBytes: () => sizeBytes };
}

async function textOf(stream: Readable): Promise<string> {
  let text = '';
  for await (const chunk of stream) text = (text + String(chunk)).slice(0, maxErrorLength);
  return text;
}
