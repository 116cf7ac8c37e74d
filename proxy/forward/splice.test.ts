// Takes about 3 s
/** Ping and Close frames that the proxy inserts into WebSockets of real clients and servers. */
import { once } from 'node:events';
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import {
  connected,
  gathered,
  openFixture,
  spawnReady,
  startProgram,
  startRawProgram,
  until,
} from '../testing/fixture.ts';
import type { Fixture, Program } from '../testing/fixture.ts';

const drain = { noticeMs: 0, deadlineMs: 10_000 };
const webSocketPingMs = 30_000;

interface WebSocketProgram extends Program {
  readonly sockets: WebSocketServer['clients'];
  /** The codes with which connections were closed. */
  readonly codes: number[];
}

async function startWebSockets(onConnection: (socket: WebSocket) => void = () => {}): Promise<WebSocketProgram> {
  const program = await startProgram((_request, response) => void response.end());
  const server = new WebSocketServer({ server: program.server });
  const codes: number[] = [];
  server.on('connection', (socket) => {
    socket.on('close', (code) => codes.push(code));
    onConnection(socket);
  });
  return { ...program, sockets: server.clients, codes, [Symbol.asyncDispose]: program[Symbol.asyncDispose] };
}

async function openSocket({ port }: Fixture, token: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/${token}/`);
  await once(socket, 'open');
  return socket;
}

/** The proxy's connection to the next client that asks for an upgrade. */
async function nextUpgrade({ server }: Fixture): Promise<Socket> {
  const [, socket] = (await once(server, 'upgrade')) as [unknown, Socket];
  return socket;
}

function upgradeTo(token: string, protocol: string): string {
  const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
  return `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${key}\r\n\r\n`;
}

/** A backend that accepts any upgrade, then calls `onOpen`. */
async function startAgreeing(onOpen: (socket: Socket) => void, protocol = 'websocket') {
  return await startRawProgram((socket, head) => {
    const key = /^sec-websocket-key: (.*)$/im.exec(head)?.[1] ?? '';
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.removeAllListeners('data');
    socket.write(
      `HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    onOpen(socket);
  });
}

test('a proxy that stops closes WebSockets with 1012 after the notice period, and their backends see the code', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, drain: { noticeMs: 2_000, deadlineMs: 10_000 } });
  await using program = await startWebSockets((socket) => socket.on('message', (data: Buffer) => socket.send(data)));
  const { token, backend } = await spawnReady(fixture, program);
  const socket = await openSocket(fixture, token);
  const closing = fixture.proxy[Symbol.asyncDispose]();
  await clock.advance(1_999);
  // It still works during the notice period.
  socket.send('still here');
  const [data] = (await once(socket, 'message')) as [Buffer];
  expect(data.toString()).toBe('still here');
  const closed = once(socket, 'close') as Promise<[number, Buffer]>;
  await clock.advance(1);
  const [code, reason] = await closed;
  expect([code, reason.toString()]).toEqual([1012, 'The proxy is restarting']);
  await closing;
  await until(() => program.codes.length === 1);
  expect(program.codes).toEqual([1012]);
  expect(fixture.reports.at(-1)?.[backend]).toBeUndefined();
});

test('a Close frame of the proxy does not split a message of the backend', async () => {
  await using fixture = await openFixture({ drain });
  const backends: Socket[] = [];
  await using program = await startAgreeing((socket) => {
    socket.allowHalfOpen = true;
    backends.push(socket);
  });
  const { token } = await spawnReady(fixture, program);
  const joined = nextUpgrade(fixture);
  const socket = await openSocket(fixture, token);
  const client = await joined;
  const messages: string[] = [];
  socket.on('message', (data: Buffer) => messages.push(data.toString()));
  const closed = once(socket, 'close') as Promise<[number, Buffer]>;
  const [backend] = backends;
  const before = client.bytesWritten;
  // The head and the first letter of a text message.
  backend?.write(Buffer.from([0x81, 5, 0x68]));
  await until(() => client.bytesWritten > before);
  const closing = fixture.proxy[Symbol.asyncDispose]();
  backend?.write('ello');
  await until(() => socket.readyState === WebSocket.CLOSING);
  // No frame may follow a Close frame, so this one is dropped.
  const written = client.bytesWritten;
  backend?.end(Buffer.from([0x81, 1, 0x78]));
  const [code] = await closed;
  expect([code, messages, client.bytesWritten]).toEqual([1012, ['hello'], written]);
  await closing;
});

test('a proxy that stops keeps connections of other protocols open until the deadline', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, drain: { noticeMs: 1_000, deadlineMs: 5_000 } });
  await using program = await startAgreeing((socket) => socket.pipe(socket), 'echo');
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(upgradeTo(token, 'echo'));
  await once(client, 'data');
  const closing = fixture.proxy[Symbol.asyncDispose]();
  await clock.advance(4_000);
  client.write('hello');
  const [echoed] = (await once(client, 'data')) as [Buffer];
  expect(echoed.toString()).toBe('hello');
  const closed = once(client, 'close');
  await clock.advance(1_000);
  await closed;
  await closing;
});

test('a proxy that stops answers new WebSockets with 503', async () => {
  await using fixture = await openFixture({ drain });
  await using program = await startWebSockets();
  const { token } = await spawnReady(fixture, program);
  const closing = fixture.proxy[Symbol.asyncDispose]();
  const socket = new WebSocket(`ws://127.0.0.1:${fixture.port}/${token}/`);
  const [error] = (await once(socket, 'error')) as [Error];
  expect(error.message).toContain('503');
  await closing;
});

test('a client that answers pings keeps its WebSocket, even if it sends nothing else', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, webSocketPingMs });
  let pongs = 0;
  await using program = await startWebSockets((socket) => socket.on('pong', () => (pongs += 1)));
  const { token } = await spawnReady(fixture, program);
  const socket = await openSocket(fixture, token);
  let pings = 0;
  socket.on('ping', () => (pings += 1));
  for (let round = 1; round <= 3; round += 1) {
    // Ends the current period, and a silent one.
    await clock.advance(2 * webSocketPingMs);
    await until(() => pings === round && pongs === round);
  }
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.terminate();
});

test('a client that has vanished is disconnected, and its backend no longer has a connection', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, webSocketPingMs });
  await using program = await startWebSockets();
  const { token, backend } = await spawnReady(fixture, program);
  // Never reads, and so never answers.
  const client = await connected(fixture.port);
  client.pause();
  client.write(upgradeTo(token, 'websocket'));
  await until(() => program.sockets.size === 1);
  await clock.advance(2 * webSocketPingMs);
  expect(program.sockets.size).toBe(1);
  await clock.advance(webSocketPingMs);
  await until(() => program.sockets.size === 0);
  await until(async () => {
    await clock.advance(100);
    return fixture.reports.at(-1)?.[backend] === undefined;
  });
  client.destroy();
});

test('a client that receives gets more time to answer than an idle one, but not forever', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, webSocketPingMs });
  await using program = await startWebSockets();
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(upgradeTo(token, 'websocket'));
  await until(() => program.sockets.size === 1);
  let received = 0;
  client.on('data', ({ length }) => (received += length));
  for (let period = 1; period <= 10; period += 1) {
    const before = received;
    for (const socket of program.sockets) socket.send('news');
    await until(() => received > before);
    await clock.advance(webSocketPingMs);
    expect({ period, open: program.sockets.size }).toEqual({ period, open: 1 });
  }
  for (const socket of program.sockets) socket.send('news');
  await clock.advance(2 * webSocketPingMs);
  await until(() => program.sockets.size === 0);
  client.destroy();
});

test('protocols other than WebSocket get no pings', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, webSocketPingMs });
  await using program = await startAgreeing(() => {}, 'echo');
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(upgradeTo(token, 'echo'));
  await once(client, 'data');
  let more = 0;
  client.on('data', ({ length }) => (more += length));
  await clock.advance(10 * webSocketPingMs);
  expect([more, program.sockets.size]).toEqual([0, 1]);
  client.destroy();
});

test('a client that has finished sending still receives from its backend', async () => {
  await using fixture = await openFixture();
  let received = '';
  await using program = await startAgreeing((socket) => {
    socket.allowHalfOpen = true;
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    socket.once('end', () => socket.end(`all of ${received}`));
  }, 'echo');
  const { token, backend } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.allowHalfOpen = true;
  client.write(upgradeTo(token, 'echo'));
  await once(client, 'data');
  client.end('it');
  expect(await gathered(client)).toBe('all of it');
  await until(() => fixture.reports.at(-1)?.[backend] === undefined);
  expect(program.sockets.size).toBe(0);
});

test('the last bytes of a client that resets its connection reach a backend that still sends', async () => {
  await using fixture = await openFixture();
  const { promise: opened, resolve } = Promise.withResolvers<Socket>();
  await using program = await startAgreeing(resolve, 'echo');
  const { token } = await spawnReady(fixture, program);
  const client = await connected(fixture.port);
  client.write(upgradeTo(token, 'echo'));
  const [atBackend] = await Promise.all([opened, once(client, 'data')]);
  const received = gathered(atBackend);
  // The proxy reads this after the reset, and writes it to the client before it reads the last words.
  atBackend.write('news');
  client.write('last words');
  client.resetAndDestroy();
  expect(await received).toBe('last words');
});

test.each(['websocket', 'echo'])('a slow client of %s slows its backend down', async (protocol) => {
  await using fixture = await openFixture();
  let sent = 0;
  await using program = await startAgreeing((socket) => {
    const frame = Buffer.concat([Buffer.from([0x82, 126, 0xff, 0xff]), Buffer.alloc(65_535)]);
    const send = () => {
      while (!socket.destroyed && sent < 1024 * frame.length) {
        sent += frame.length;
        if (!socket.write(frame)) break;
      }
    };
    socket.on('drain', send);
    send();
  }, protocol);
  const { token } = await spawnReady(fixture, program);
  const joined = nextUpgrade(fixture);
  const client = await connected(fixture.port);
  client.pause();
  client.write(upgradeTo(token, protocol));
  const end = await joined;
  await until(() => end.writableNeedDrain);
  let before = -1;
  await until(() => before === (before = sent));
  // The kernel buffers of both connections, far below the 64 MiB that the backend would send.
  expect(sent).toBeLessThan(32 * 1024 * 1024);
  expect(end.writableLength).toBeLessThan(1024 * 1024);
  client.destroy();
});
