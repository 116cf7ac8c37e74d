import { expect, test } from 'vitest';
import { ChunkBuffers } from './writer.ts';

test('memory is used again, for chunks of its size only', () => {
  const buffers = new ChunkBuffers();
  const [small, large] = [buffers.acquire(10), buffers.acquire(20)];
  buffers.release(small);
  buffers.release(large);
  expect(buffers.acquire(20)).toBe(large);
  expect(buffers.acquire(20)).not.toBe(large);
  expect(buffers.acquire(10)).toBe(small);
});

test('no more is kept than is said', () => {
  const buffers = new ChunkBuffers();
  const used = [buffers.acquire(10), buffers.acquire(10), buffers.acquire(10)];
  const takeThree = () => [buffers.acquire(10), buffers.acquire(10), buffers.acquire(10)];
  for (const buffer of used) buffers.release(buffer);
  buffers.trim(2);
  const again = takeThree();
  expect(again.filter((buffer) => used.includes(buffer))).toHaveLength(2);
  for (const buffer of again) buffers.release(buffer);
  buffers.trim(0);
  expect(takeThree().filter((buffer) => again.includes(buffer))).toEqual([]);
});
