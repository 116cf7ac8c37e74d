import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ReadBuffer } from './read-buffer.ts';

/** A read that fills a buffer, and one that needs little of it. */
const [much, little] = [64 * 1024, 10];

test('a channel with much to read gets its own buffer, which another channel uses afterwards', () => {
  const socket = new Socket();
  const [first, second] = [new ReadBuffer(), new ReadBuffer()];
  const shared = first.next();
  first.fit(much, socket);
  const own = first.next();
  expect([own === shared, first.isOwn]).toEqual([false, true]);
  first.fit(little, socket);
  expect([first.next() === shared, first.isOwn]).toEqual([true, false]);
  second.fit(much, socket);
  expect(second.next()).toBe(own);
});

test.each([
  ['paused', (socket: Socket) => void socket.pause()],
  ['closed', (socket: Socket) => void socket.destroy()],
])('no other channel gets the buffer of a channel that is %s: its bytes may not be written yet', (_what, stop) => {
  const [socket, other] = [new Socket(), new Socket()];
  const [first, second] = [new ReadBuffer(), new ReadBuffer()];
  first.fit(much, socket);
  const own = first.next();
  stop(socket);
  first.fit(little, socket);
  second.fit(much, other);
  expect(second.next()).not.toBe(own);
});
