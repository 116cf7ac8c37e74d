import { expect, test } from 'vitest';
import { ChunkBuffers } from './writer.ts';

test('reuses released memory, for chunks of the same size only', () => {
  const buffers = new ChunkBuffers();
  const [small, large] = [buffers.acquire(10), buffers.acquire(20)];
  buffers.release(small);
  buffers.release(large);
  expect(buffers.acquire(20)).toBe(large);
  expect(buffers.acquire(20)).not.toBe(large);
  expect(buffers.acquire(10)).toBe(small);
});

test('trim keeps at most the given number of buffers', () => {
  const buffers = new ChunkBuffers();
  const used = [buffers.acquire(10), buffers.acquire(10), buffers.acquire(10)];
  const acquireThree = () => [buffers.acquire(10), buffers.acquire(10), buffers.acquire(10)];
  for (const buffer of used) buffers.release(buffer);
  buffers.trim(2);
  const reused = acquireThree();
  expect(reused.filter((buffer) => used.includes(buffer))).toHaveLength(2);
  for (const buffer of reused) buffers.release(buffer);
  buffers.trim(0);
  expect(acquireThree().filter((buffer) => reused.includes(buffer))).toEqual([]);
});
