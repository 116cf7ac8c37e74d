import { access } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { diskFolder } from '../kit/machine/disk-folder.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { openScratchFolder } from './scratch-folder.ts';

const before = process.env['TMPDIR'];

afterEach(() => {
  if (before === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = before;
});

test('becomes the folder of temporary files, inside TMPDIR, and is removed', async () => {
  await using parent = await temporaryFolder();
  process.env['TMPDIR'] = parent.path;
  const scratch = await openScratchFolder();
  expect([dirname(scratch.path), tmpdir()]).toEqual([parent.path, scratch.path]);
  await scratch[Symbol.asyncDispose]();
  expect(tmpdir()).toBe(parent.path);
  await expect(access(scratch.path)).rejects.toThrow('ENOENT');
});

test('keeps the folder on the disk, also when a scratch folder is opened inside another', async () => {
  await using run = await openScratchFolder();
  const onDisk = diskFolder();
  const scratch = await openScratchFolder();
  expect(diskFolder()).toBe(run.path);
  await scratch[Symbol.asyncDispose]();
  expect(diskFolder()).toBe(onDisk);
});

test('is created without TMPDIR', async () => {
  delete process.env['TMPDIR'];
  const scratch = await openScratchFolder();
  expect(tmpdir()).toBe(scratch.path);
  await scratch[Symbol.asyncDispose]();
  expect(process.env['TMPDIR']).toBeUndefined();
});
