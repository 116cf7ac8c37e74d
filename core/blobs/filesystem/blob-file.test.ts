import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { copyFile } from './blob-file.ts';
import { ReadBuffers } from './read-buffers.ts';

const sizeBytes = 128 * 1024 * 1024;

it('yields to the event loop while it copies from the page cache to an equally fast receiver', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-copy-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const path = join(folder, 'blob');
  await writeFile(path, Buffer.alloc(sizeBytes));
  await using file = await open(path);
  let turns = 0;
  let isDone = false;
  const count = () => {
    if (isDone) return;
    turns += 1;
    setImmediate(count);
  };
  let received = 0;
  const to = new Writable({
    write: (bytes: Buffer, _encoding, done) => {
      received += bytes.length;
      // Another thread reads the first part; after that, the copy waits for nothing.
      if (received === bytes.length) setImmediate(count);
      done();
    },
  });
  await copyFile(file, { start: 0, end: sizeBytes - 1 }, { to, buffers: new ReadBuffers() });
  isDone = true;
  expect(received).toBe(sizeBytes);
  expect(turns).toBeGreaterThan(5);
});
