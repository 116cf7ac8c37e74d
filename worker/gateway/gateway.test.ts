import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { connect as connectTcp, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { linkConnect } from '../../core/link/link-client.ts';
import { linkIdentity, linkKey, linkTerms } from '../../core/link/link-terms.ts';
import { silentLog } from '../../core/log/log.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import type { Store } from '../../core/store/store.ts';
import { becomeTerminated, newBackend } from '../../model/backend.ts';
import type { BackendChange } from '../../model/change-backend.ts';
import { nodes } from '../../model/node.ts';
import { openGateway } from './gateway.ts';
import type { Gateway } from './gateway.ts';
import { Run } from '../lifecycle/run.ts';
import { Statuses } from '../lifecycle/statuses.ts';
import { eventually, openTestPlatform, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import { endedGraceMs } from './tunnel.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';

const secret = new PlatformSecret(randomBytes(32));
const settings = { host: '127.0.0.1', port: 0, advertisedHost: '127.0.0.1' };

interface TestGateway extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly clock: ManualClock;
  readonly runs: Map<string, Run>;
  /** Adds the run of a backend that listens on a loopback port. */
  run(id: string, port: number, change?: BackendChange): Run;
}

async function openTestGateway(): Promise<TestGateway> {
  const closing = new AbortController();
  const clock = new ManualClock();
  const log = silentLog();
  const runs = new Map<string, Run>();
  const gateway = await openGateway(
    { runs, clock, log, closing: closing.signal },
    { settings, secret, answer: async (_request, response) => void response.writeHead(404).end() },
  );
  const bus = openInProcessBus({ log });
  return {
    gateway,
    clock,
    runs,
    run: (id, port, change = (backend) => backend) => {
      const statuses = new Statuses({ store: {} as Store, bus, clock, log }, id, closing.signal);
      const run = new Run(change(backendOf(id, port)), { statuses, closing: closing.signal });
      run.useAddress('127.0.0.1');
      run.containerStarted(id);
      runs.set(id, run);
      return run;
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await gateway[Symbol.asyncDispose]();
      await bus[Symbol.asyncDispose]();
    },
  };
}

function backendOf(id: string, port: number) {
  return newBackend(backendPlan({ id, port }), new Date());
}

interface Answer {
  readonly status: number | undefined;
  readonly socket: Socket;
}

async function ask({ address }: Gateway, options: RequestOptions, has = secret): Promise<Answer> {
  const link = await linkConnect({ ...address, secret: has, signal: AbortSignal.timeout(30_000) });
  link.allowHalfOpen = true;
  link.on('error', () => {});
  const request = send({ ...options, createConnection: () => link });
  request.end();
  const event = options.method === 'CONNECT' ? 'connect' : 'response';
  const [answer, , head] = (await once(request, event)) as [IncomingMessage, Socket, Buffer?];
  if (head?.length) link.unshift(head);
  return { status: answer.statusCode, socket: link };
}

function connectTo(gateway: Gateway, path: string, has = secret): Promise<Answer> {
  return ask(gateway, { method: 'CONNECT', path }, has);
}

async function listen(onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { port: (server.address() as AddressInfo).port, sockets, [Symbol.asyncDispose]: close };
}

async function until(holds: () => boolean): Promise<void> {
  await eventually(async () => holds() || undefined);
}

test('only backends that run here are reachable, and only with the secret', async () => {
  await using node = await openTestGateway();
  await using program = await listen((socket) => void socket.end('hello'));
  node.gateway.open();
  node.run('there', program.port);
  const { status, socket } = await connectTo(node.gateway, 'there');
  expect([status, await text(socket)]).toEqual([200, 'hello']);
  socket.end();
  const created = node.run('created', program.port);
  created.containerCreated('created');
  const unknownYet = node.run('scheduled', program.port);
  unknownYet.useAddress(undefined);
  node.run('ended', program.port, (backend) =>
    becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, new Date()),
  );
  await node.run('finalizing', program.port).finalize(async () => {});
  for (const id of ['created', 'scheduled', 'ended', 'finalizing', 'unheard-of', `127.0.0.1:${program.port}`]) {
    const refused = await connectTo(node.gateway, id);
    expect([id, refused.status, await text(refused.socket)]).toEqual([id, 404, '']);
  }
  expect((await ask(node.gateway, { path: `http://127.0.0.1:${program.port}/` })).status).toBe(404);
  await expect(connectTo(node.gateway, 'there', new PlatformSecret(randomBytes(32)))).rejects.toThrow(/SSL/i);
  await until(() => program.sockets.size === 0);
});

test('a request for a container that accepts no connection gets 502', async () => {
  await using node = await openTestGateway();
  node.gateway.open();
  node.run('deaf', 1);
  expect((await connectTo(node.gateway, 'deaf')).status).toBe(502);
});

test('requests wait until the worker has adopted its backends', async () => {
  await using node = await openTestGateway();
  await using program = await listen((socket) => void socket.end('hello'));
  const early = connectTo(node.gateway, 'there');
  let isAnswered = false;
  void early.then(() => (isAnswered = true));
  // Long enough for a handshake and an immediate answer.
  const link = await linkConnect({ ...node.gateway.address, secret, signal: AbortSignal.timeout(30_000) });
  link.end('This is no HTTP\r\n\r\n');
  expect(await text(link)).toContain('400');
  expect(isAnswered).toBe(false);
  node.run('there', program.port);
  node.gateway.open();
  const { status, socket } = await early;
  expect(status).toBe(200);
  socket.destroy();
});

test('each side may end before the other', async () => {
  await using node = await openTestGateway();
  const received: string[] = [];
  await using program = await listen((socket) => {
    socket.on('data', (chunk) => received.push(chunk.toString()));
    socket.once('end', () => setImmediate(() => socket.end('bye')));
  });
  node.gateway.open();
  node.run('there', program.port);
  const { socket } = await connectTo(node.gateway, 'there');
  socket.end('my last word');
  expect(await text(socket)).toBe('bye');
  expect(received.join('')).toBe('my last word');
  await until(() => program.sockets.size === 0);
});

test('an error on one side resets the other', async () => {
  await using node = await openTestGateway();
  await using program = await listen((socket) => socket.resume());
  node.gateway.open();
  node.run('there', program.port);
  const first = await connectTo(node.gateway, 'there');
  const broken = once(first.socket, 'error');
  await until(() => program.sockets.size === 1);
  for (const socket of program.sockets) socket.resetAndDestroy();
  first.socket.resume();
  expect(((await broken) as [NodeJS.ErrnoException])[0].code).toBe('ECONNRESET');
});

test('what a container sent before it reset its connection arrives, also if the client still sends', async () => {
  await using node = await openTestGateway();
  await using program = await listen((socket) => socket.resume());
  node.gateway.open();
  node.run('there', program.port);
  const { socket } = await connectTo(node.gateway, 'there');
  await until(() => program.sockets.size === 1);
  const words = once(socket, 'data') as Promise<unknown> as Promise<[Buffer]>;
  const broken = once(socket, 'error') as Promise<unknown> as Promise<[NodeJS.ErrnoException]>;
  // The gateway reads this after the reset, and writes it before it reads the last words.
  socket.write('more');
  for (const each of program.sockets) {
    each.write('last words');
    each.resetAndDestroy();
  }
  expect((await words).toString()).toBe('last words');
  expect((await broken)[0].code).toBe('ECONNRESET');
});

test('what a client sent before it reset its link reaches a container that still sends', async () => {
  await using node = await openTestGateway();
  await using program = await listen(() => {});
  node.gateway.open();
  node.run('there', program.port);
  const connection = connectTcp(node.gateway.address);
  const pskCallback = () => ({ psk: linkKey(secret), identity: linkIdentity });
  const link = connectTls({ ...linkTerms, socket: connection, pskCallback });
  link.on('error', () => {});
  link.write('CONNECT there HTTP/1.1\r\nHost: there\r\n\r\n');
  await once(link, 'data');
  const [atContainer] = program.sockets;
  if (!atContainer) throw new Error('The container has no connection');
  const words = once(atContainer, 'data') as Promise<unknown> as Promise<[Buffer]>;
  // The gateway reads this after the reset, and writes it to the link before it reads the last words.
  atContainer.write('news');
  link.write('last words');
  connection.resetAndDestroy();
  expect((await words).toString()).toBe('last words');
});

test('after the end of a backend its tunnels stay open for a moment, then they are reset', async () => {
  await using node = await openTestGateway();
  await using program = await listen((socket) => socket.resume());
  node.gateway.open();
  const run = node.run('there', program.port);
  const { socket } = await connectTo(node.gateway, 'there');
  run.finish();
  node.runs.delete('there');
  for (const each of program.sockets) each.write('last words');
  const [words] = (await once(socket, 'data')) as [Buffer];
  expect(words.toString()).toBe('last words');
  const cut = once(socket, 'error');
  await node.clock.advance(endedGraceMs);
  expect(((await cut) as [NodeJS.ErrnoException])[0].code).toBe('ECONNRESET');
  await until(() => program.sockets.size === 0);
});

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`a gateway before a real engine ${why ?? ''}`, () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await openTestPlatform();
  });
  afterAll(async () => {
    await platform?.[Symbol.asyncDispose]();
  });

  const gatewayOf = async (): Promise<Gateway> => {
    const address = (await platform.store.get(nodes, platform.node))?.gateway;
    if (!address) throw new Error('The node has no gateway');
    return { address } as Gateway;
  };

  async function get(id: string): Promise<{ status: number | undefined; body: string }> {
    const { status, socket } = await connectTo(await gatewayOf(), id, platform.secret);
    if (status === 200) socket.write('GET /hello.txt HTTP/1.0\r\n\r\n');
    return { status, body: await text(socket) };
  }

  it('connects to a container, also after a restart of the worker, and answers 404 when the backend has ended', async () => {
    const imageDigest = await platform.images.add(
      'echo hello > hello.txt; trap "exit 0" TERM; httpd -p $PORT; sleep 999 & wait',
    );
    const worker = await platform.openWorker({ settings: { gateway: settings } });
    const id = await platform.schedule({ imageDigest });
    await platform.until(id, 'ready');
    expect(await get(id)).toMatchObject({ status: 200, body: expect.stringContaining('hello\n') as string });
    const port = (await gatewayOf()).address.port;
    await worker[Symbol.asyncDispose]();
    await expect(get(id)).rejects.toThrow('ECONNREFUSED');
    await using _successor = await platform.openWorker({ settings: { gateway: settings } });
    expect((await gatewayOf()).address.port).not.toBe(port);
    expect((await get(id)).status).toBe(200);
    await platform.end(id);
    expect((await get(id)).status).toBe(404);
  });
});
