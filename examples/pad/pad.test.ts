// Takes about 4 s
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';

interface Message {
  readonly type: string;
  readonly [field: string]: unknown;
}

let folder: string;
let cleanUp: AsyncDisposableStack;

beforeEach(async () => {
  cleanUp = new AsyncDisposableStack();
  folder = await mkdtemp(join(tmpdir(), 'pad-test-'));
  cleanUp.defer(async () => await rm(folder, { recursive: true }));
});

afterEach(async () => await cleanUp.disposeAsync());

test('two clients at one board see each other and their strokes', async () => {
  const pad = await startPad({ fencingToken: 1 });
  const ada = await takeSeat(pad, 'Ada');
  const bob = await takeSeat(pad, 'Bøb');

  const names = (message: Message) => (message['people'] as { name: string }[]).map(({ name }) => name);
  expect(names(await ada.next('people', (message) => names(message).length === 2))).toEqual(['Ada', 'Bøb']);

  ada.send({ type: 'cursor', point: [10, 20] });
  expect(await bob.next('cursor')).toEqual({ type: 'cursor', person: ada.you, point: [10, 20] });

  ada.send({ type: 'begin', id: `${ada.you}/0`, colour: 1, width: 2, points: [[1, 2]] });
  ada.send({
    type: 'extend',
    id: `${ada.you}/0`,
    points: [
      [3, 4],
      [5_000, -7],
    ],
  });
  const stroke = { id: `${ada.you}/0`, colour: 1, width: 2, points: [[1, 2]] };
  expect(await bob.next('begin')).toEqual({ type: 'begin', stroke });
  expect(await bob.next('extend')).toEqual({
    type: 'extend',
    id: stroke.id,
    points: [
      [3, 4],
      [1_600, 0],
    ],
  });
});

test('a client cannot draw or remove strokes of another client, and invalid messages are ignored', async () => {
  const pad = await startPad({ fencingToken: 1 });
  const ada = await takeSeat(pad, 'Ada');
  const eve = await takeSeat(pad, 'Eve');
  ada.send({ type: 'begin', id: `${ada.you}/0`, colour: 1, width: 2, points: [[1, 2]] });
  await eve.next('begin');
  eve.send({ type: 'remove', id: `${ada.you}/0` });
  eve.send({ type: 'begin', id: `${ada.you}/1`, colour: 1, width: 2, points: [[1, 2]] });
  eve.send({ type: 'begin', id: `${eve.you}/1`, colour: 99, width: 2, points: [[1, 2]] });
  eve.send({ type: 'begin', id: `${eve.you}/2`, colour: 1, width: 2, points: [['x', null]] });
  eve.socket.send('{');
  eve.send({ type: 'begin', id: `${eve.you}/3`, colour: 0, width: 0, points: [[7, 7]] });
  await ada.next('begin', ({ stroke }) => (stroke as { id: string }).id === `${eve.you}/3`);
  const newcomer = await takeSeat(pad, 'Kim');
  const ids = (newcomer.welcome['strokes'] as { id: string }[]).map(({ id }) => id);
  expect(ids).toEqual([`${ada.you}/0`, `${eve.you}/3`]);
});

test('SIGTERM saves, and the next backend with the key loads', async () => {
  const first = await startPad({ fencingToken: 1 });
  const ada = await takeSeat(first, 'Ada');
  ada.send({ type: 'begin', id: `${ada.you}/0`, colour: 3, width: 1, points: [[11, 12]] });
  ada.send({ type: 'extend', id: `${ada.you}/0`, points: [[13, 14]] });
  // The server has accepted the stroke when it sends it to the next client.
  expect((await takeSeat(first, 'Bob')).welcome['strokes']).toHaveLength(1);
  const closed = once(ada.socket, 'close');
  expect(await first.stop()).toBe(0);
  expect((await closed)[0]).toBe(1001);

  const second = await startPad({ fencingToken: 2 });
  const { welcome } = await takeSeat(second, 'Ada');
  expect(welcome['session']).toMatchObject({ key: 'room-1', fencingToken: 2, loadedFrom: 1 });
  expect(welcome['strokes']).toEqual([
    {
      id: `${ada.you}/0`,
      colour: 3,
      width: 1,
      points: [
        [11, 12],
        [13, 14],
      ],
    },
  ]);
});

test('a backend whose key was assigned to a newer backend does not overwrite the drawing of the newer backend', async () => {
  const old = await startPad({ fencingToken: 4 });
  const young = await startPad({ fencingToken: 5 });
  for (const pad of [young, old]) {
    const ada = await takeSeat(pad, 'Ada');
    ada.send({ type: 'begin', id: `${ada.you}/0`, colour: pad === young ? 1 : 2, width: 1, points: [[1, 1]] });
    await takeSeat(pad, 'Bob').then((bob) => expect(bob.welcome['strokes']).toHaveLength(1));
    await pad.stop();
  }
  const next = await startPad({ fencingToken: 6 });
  const { welcome } = await takeSeat(next, 'Ada');
  expect(welcome['session']).toMatchObject({ loadedFrom: 5 });
  expect(welcome['strokes']).toMatchObject([{ colour: 1 }]);
});

test('an invalid file is renamed', async () => {
  const first = await startPad({ fencingToken: 1 });
  const ada = await takeSeat(first, 'Ada');
  ada.send({ type: 'begin', id: `${ada.you}/0`, colour: 3, width: 1, points: [[11, 12]] });
  expect((await takeSeat(first, 'Bob')).welcome['strokes']).toHaveLength(1);
  await first.stop();
  const [name = ''] = await readdir(folder);
  await writeFile(join(folder, name), '{"strokes": [');
  const second = await startPad({ fencingToken: 2 });
  expect((await takeSeat(second, 'Ada')).welcome['strokes']).toEqual([]);
  expect(await readdir(folder)).toEqual([`${name}.broken`]);
});

test('echo, healthz and whoami', async () => {
  const pad = await startPad({ fencingToken: 1 });
  const socket = new WebSocket(`ws://127.0.0.1:${pad.port}/echo`);
  await once(socket, 'open');
  socket.send('hello');
  expect(String((await once(socket, 'message'))[0])).toBe('hello');
  socket.close();
  expect(await (await fetch(`http://127.0.0.1:${pad.port}/healthz`)).json()).toEqual({ status: 'ok' });
  const headers = { 'x-verified-username': 'Ada', 'x-verified-secret': 'do not tell', 'x-other': 'x' };
  expect(await (await fetch(`http://127.0.0.1:${pad.port}/whoami`, { headers })).json()).toEqual({
    'x-verified-username': 'Ada',
    'x-verified-secret': '(set)',
  });
  const page = await fetch(`http://127.0.0.1:${pad.port}/?x=1`);
  expect(await page.text()).not.toMatch(/(?:src|href)="(?:\/|https?:)/);
});

interface RunningPad {
  readonly port: number;
  /** Sends SIGTERM and returns the exit code. */
  readonly stop: () => Promise<number | null>;
}

/** Starts the pad in its own process, configured by environment variables as in a container. */
async function startPad(options: { fencingToken: number }): Promise<RunningPad> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('server.js', import.meta.url))], {
    env: {
      PORT: '0',
      PAD_FOLDER: folder,
      SESSION_BACKEND_KEY: 'room-1',
      SESSION_BACKEND_FENCING_TOKEN: String(options.fencingToken),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    return await exited;
  };
  cleanUp.defer(async () => void (await stop()));
  const lines = createInterface(child.stdout);
  const [line] = (await once(lines, 'line')) as [string];
  return { port: Number(/port (\d+)/.exec(line)?.[1]), stop };
}

/** A client of the board. `next` waits for a message of a type, skipping others. */
async function takeSeat(pad: RunningPad, name: string) {
  // A browser's UTF-8 in a header is Latin-1 to Node.
  const headers = { 'x-verified-username': Buffer.from(name).toString('latin1') };
  const socket = new WebSocket(`ws://127.0.0.1:${pad.port}/ws`, { headers });
  cleanUp.defer(() => socket.terminate());
  const received: Message[] = [];
  let wake = () => {};
  socket.on('message', (data: Buffer) => {
    received.push(JSON.parse(data.toString('utf8')) as Message);
    wake();
  });
  const next = async (type: string, fits: (message: Message) => boolean = () => true): Promise<Message> => {
    for (;;) {
      const message = received.shift();
      if (message?.type === type && fits(message)) return message;
      if (!message) await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  const welcome = await next('welcome');
  const send = (message: Message) => socket.send(JSON.stringify(message));
  return { socket, you: welcome['you'] as string, welcome, next, send };
}
