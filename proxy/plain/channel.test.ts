/** A channel writes at the end of a turn of the event loop, in order. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { silentLog } from '../../core/log/log.ts';
import { gathered } from '../testing/fixture.ts';
import { Channel } from './channel.ts';

/** A channel, and all bytes that the other side receives. */
async function open() {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [[accepted]] = (await Promise.all([once(server, 'connection'), once(socket, 'connect')])) as [
    [Socket],
    unknown,
  ];
  const received = gathered(accepted.on('end', () => accepted.end()));
  server.close();
  const user = { onBytes: () => {}, onEnd: () => {}, onClose: () => {} };
  return { received, channel: Channel.of(socket, user, new ErrorBoundary(silentLog())) };
}

test('texts of a turn and bytes keep their order', async () => {
  const { received, channel } = await open();
  channel.write('a');
  channel.write('b');
  channel.writeBytes(Buffer.from('c'));
  channel.writeWith('d', [Buffer.from('e'), Buffer.from('f')]);
  channel.writeWith('g', [Buffer.alloc(20_000, 'h')]);
  channel.write('i');
  channel.close();
  expect(await received).toBe(`abcdefg${'h'.repeat(20_000)}i`);
  expect(channel.sentBytes).toBe(20_008);
});

test.each(['end', 'close', 'destroy'] as const)(
  'nothing that was written is lost by %s in the same turn',
  async (how) => {
    const { received, channel } = await open();
    channel.write('all');
    channel[how]();
    expect(await received).toBe('all');
  },
);

test('actions wait for the end of the turn, and are not called on a closed connection', async () => {
  const { received, channel } = await open();
  const called: string[] = [];
  channel.whenFlushed(() => called.push('at once'));
  channel.write('a');
  channel.whenFlushed(() => called.push('at the end of the turn'));
  expect([channel.isFree, called]).toEqual([true, ['at once']]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(called).toEqual(['at once', 'at the end of the turn']);
  channel.write('b');
  channel.whenFlushed(() => called.push('never'));
  channel.socket.destroy();
  await new Promise((resolve) => setImmediate(resolve));
  expect([await received, called.length]).toEqual(['a', 2]);
});
