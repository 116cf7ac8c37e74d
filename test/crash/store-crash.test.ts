// Takes about 25 s
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openFileBlobs } from '../../core/blobs/filesystem/filesystem.ts';
import { silentLog } from '../../core/log/log.ts';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { pairs } from './pairs.ts';
import type { Pair } from './pairs.ts';
import { runUntilKilled } from './killed-child.ts';
import { bytesOf } from '../kit/registry/byte-source.ts';
import { hashing } from '../kit/registry/hashing.ts';
import { sha256 } from '../kit/registry/digests.ts';

const log = silentLog();

const storeRounds = 20;
const blobRounds = 6;

test('SQLite loses no acknowledged write by kill -9, and its lock is free at once', async () => {
  await using folder = await temporaryFolder();
  let acknowledged = 0;
  for (let round = 0; round < storeRounds; round += 1) {
    const lines = await runUntilKilled('store-writer-child.ts', [folder.path, `${round}`], upTo(1_000));
    acknowledged += lines.length;
    await using store = await openSqliteStore({ folder: folder.path, collections: [pairs], log });
    // One assertion for all documents, because an assertion costs more than the read of a document.
    const lost: object[] = [];
    for (const acknowledgement of lastAcknowledged(lines)) {
      const pair = await store.get(pairs, acknowledgement.id);
      if (!isKept(acknowledgement, pair)) lost.push({ acknowledgement, pair });
    }
    expect(lost).toEqual([]);
    const all = await store.find(pairs, { index: 'byLeft' });
    expect(all.filter(({ left, right }) => left !== right)).toEqual([]);
  }
  expect(acknowledged).toBeGreaterThan(storeRounds);
});

test('Files lose no published blob by kill -9, and contain no incomplete one', async () => {
  await using folder = await temporaryFolder();
  const published = new Set<string>();
  for (let round = 0; round < blobRounds; round += 1) {
    for (const digest of await runUntilKilled('blob-writer-child.ts', [folder.path], upTo(100))) published.add(digest);
    await using blobs = await openFileBlobs({ hashing, folder: folder.path, log });
    const listed = new Set<string>();
    for await (const digest of blobs.list()) {
      const bytes = await buffer((await blobs.read(digest)) as Readable);
      expect(sha256(bytes)).toBe(digest);
      listed.add(digest);
    }
    expect([...published].filter((digest) => !listed.has(digest))).toStrictEqual([]);
    for await (const uploadId of blobs.listUploads()) {
      const before = await readFile(join(folder.path, 'uploads', uploadId));
      const bytes = Buffer.concat([before, randomBytes(300_000)]);
      await blobs.appendUpload(uploadId, before.length, bytesOf(bytes.subarray(before.length)));
      const digest = sha256(bytes);
      await blobs.publishUpload(uploadId, digest);
      expect(bytes.equals(await buffer((await blobs.read(digest)) as Readable))).toBe(true);
    }
  }
});

/** A random count of at least one. */
function upTo(max: number): number {
  return 1 + Math.floor(Math.random() * max);
}

interface Acknowledgement {
  readonly what: string;
  readonly id: string;
  readonly value: number;
  /** Whether an unacknowledged deletion may have started. */
  readonly mayBeDeleted: boolean;
}

/** Whether the store has an acknowledged write, or the result of a later one. */
function isKept({ what, value, mayBeDeleted }: Acknowledgement, pair: Pair | undefined): boolean {
  if (what === 'deleted') return pair === undefined;
  if (!pair) return what === 'inserted' && mayBeDeleted;
  if (what === 'counted') return pair.left >= value;
  return pair.left === value && pair.right === value;
}

/** The last acknowledged write of each document. */
function lastAcknowledged(lines: readonly string[]): Iterable<Acknowledgement> {
  const last = new Map<string, Acknowledgement>();
  for (const line of lines) {
    const [what = '', id = '', number = ''] = line.split(' ');
    const value = Number(number);
    last.set(id, { what, id, value, mayBeDeleted: value % 3 === 0 });
  }
  return last.values();
}
