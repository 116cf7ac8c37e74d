import { describe, expect, test } from 'vitest';
import { Random } from '../../test/fuzz/random.ts';
import { closeFrame, FrameTracker, pingFrame } from './websocket-frames.ts';

/** A frame as a server sends it. */
function frame(first: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeUInt32BE(length, 6);
  return Buffer.concat([head, payload]);
}

const [text, binary, continuation, compressed] = [0x81, 0x02, 0x80, 0xc1];

describe('FrameTracker', () => {
  test('finds every place between two frames, however they are cut into chunks', () => {
    const random = new Random(7);
    for (let round = 0; round < 300; round += 1) {
      const frames = Array.from({ length: 6 }, () => {
        const size = random.pick([0, 1, 125, 126, 127, 300, 65_535, 65_536, 70_000]);
        return frame(random.pick([text, binary, continuation, compressed]), Buffer.alloc(size, 0x88));
      });
      frames.splice(random.below(6), 0, pingFrame);
      const bytes = Buffer.concat(frames);
      const ends = new Set(frames.map((_, i) => frames.slice(0, i + 1).reduce((sum, { length }) => sum + length, 0)));
      const tracker = new FrameTracker();
      for (let at = 0; at < bytes.length;) {
        const chunk = bytes.subarray(at, at + 1 + random.below(random.pick([2, 20, 5_000, 100_000])));
        const last = [...ends].filter((end) => end > at && end <= at + chunk.length).at(-1);
        expect(tracker.read(chunk)).toBe(last === undefined ? -1 : last - at);
        at += chunk.length;
        expect(tracker.isBetweenFrames).toBe(ends.has(at));
      }
      expect(tracker.hasEnded).toBe(false);
    }
  });

  test('begins between frames', () => {
    expect(new FrameTracker().isBetweenFrames).toBe(true);
  });

  test.each([
    ['a Close frame', closeFrame(1000, 'bye')],
    ['a frame with a mask, as clients send', Buffer.from([0x81, 0x85, 1, 2, 3, 4])],
    ['an unknown operation', Buffer.from([0x83, 0])],
    ['another protocol', Buffer.from('SSH-2.0-OpenSSH_9.2\r\n')],
    ['a control frame that is too long', frame(0x89, Buffer.alloc(126))],
    ['a control frame in parts', Buffer.from([0x09, 0])],
    ['a frame longer than any', Buffer.from([0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0])],
  ])('after %s, nothing may be inserted any more', (_name, bytes) => {
    const tracker = new FrameTracker();
    expect(tracker.read(frame(text, Buffer.from('a')))).toBe(3);
    tracker.read(bytes);
    expect([tracker.hasEnded, tracker.isBetweenFrames]).toEqual([true, false]);
    expect(tracker.read(frame(text, Buffer.from('a')))).toBe(-1);
  });
});
