import { expect, test } from 'vitest';
import { ChunkBuffers } from './gridfs-writer.ts';

test('memory is used again, for chunks of its size only', () => {
  const buffers = new ChunkBuffers();
  const [small, large] = [buffers.take(10), buffers.take(20)];
  buffers.giveBack(small);
  buffers.giveBack(large);
  expect(buffers.take(20)).toBe(large);
  expect(buffers.take(20)).not.toBe(large);
  expect(buffers.take(10)).toBe(small);
});

test('no more is kept than is said', () => {
  const buffers = new ChunkBuffers();
  const used = [buffers.take(10), buffers.take(10), buffers.take(10)];
  const takeThree = () => [buffers.take(10), buffers.take(10), buffers.take(10)];
  for (const buffer of used) buffers.giveBack(buffer);
  buffers.keep(2);
  const again = takeThree();
  expect(again.filter((buffer) => used.includes(buffer))).toHaveLength(2);
  for (const buffer of again) buffers.giveBack(buffer);
  buffers.keep(0);
  expect(takeThree().filter((buffer) => again.includes(buffer))).toEqual([]);
});
