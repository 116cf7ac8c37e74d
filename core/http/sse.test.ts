import { once } from 'node:events';
import { get } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { listen, newServer } from './listener.ts';
import { EventStreams } from './sse.ts';
import type { EventStream } from './sse.ts';

/** Returns what a client receives of a stream. */
async function exchange(clock: ManualClock, act: (stream: EventStream, response: ServerResponse) => Promise<void>) {
  const server = newServer();
  await using listener = await listen(server, { host: '127.0.0.1', port: 0, drainMs: 100 });
  const streams = new EventStreams({ clock, closing: new AbortController().signal, onDrop: () => {} });
  const acting = once(server, 'request').then(async ([, response]: ServerResponse[]) => {
    if (!response) return;
    using stream = streams.open(response);
    await act(stream, response);
  });
  const [answer] = (await once(get({ port: listener.port, agent: false }), 'response')) as [IncomingMessage];
  const [body] = await Promise.all([text(answer), acting]);
  return { headers: answer.headers, body };
}

test('sends the retry time, forbids caching, and sends a comment every 15 s', async () => {
  const clock = new ManualClock();
  const { headers, body } = await exchange(clock, async (stream) => {
    await clock.advance(14_999);
    stream.send(7, 'one');
    await clock.advance(15_001);
    stream.end();
  });
  expect(headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  expect(body).toBe('retry: 2000\n\nid: 7\ndata: one\n\n:\n\n:\n\n');
});

test('data cannot add fields or events', async () => {
  const { body } = await exchange(new ManualClock(), async (stream) => {
    stream.send('1-0', 'one\rid: 9\r\ndata: two\n\nevent: x');
    stream.end();
  });
  expect(body).toBe('retry: 2000\n\nid: 1-0\ndata: one\ndata: id: 9\ndata: data: two\ndata: \ndata: event: x\n\n');
});

test('waits for a client that does not read, and sends it no comments until it reads', async () => {
  const clock = new ManualClock();
  const never = new AbortController();
  await exchange(clock, async (stream, response) => {
    response.cork();
    stream.send(1, 'x'.repeat(512 * 1024));
    const before = response.writableLength;
    await clock.advance(45_000);
    expect(response.writableLength).toBe(before);
    const drained = stream.drained(never.signal);
    response.uncork();
    await drained;
    expect(response.writableNeedDrain).toBe(false);
    stream.end();
  });
});
