/** Bodies of requests that a side does not read at once. */
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { steered } from '../../test/kit/ports/steered.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';
import { newRoute, routes } from '../../model/route.ts';
import { newToken } from '../testing/token.ts';
import {
  connected,
  openFixture,
  spawnReady,
  startProgram,
  startRawProgram,
  status,
  until,
} from '../testing/fixture.ts';
import type { Fixture } from '../testing/fixture.ts';

/** Less than a read buffer of the proxy: the proxy reads the whole body before the backend's connection has accepted all of it. */
const stepBytes = 32 * 1024;

/** More than the system's buffers of a connection take. */
const maxBodyBytes = 32 * 1024 * 1024;

test('a backend that answers before it has read the body gets no other request on that connection', async () => {
  await using fixture = await openFixture();
  const backends: Socket[] = [];
  const heads: string[] = [];
  await using program = await startRawProgram((socket, head) => {
    heads.push(head.slice(0, head.indexOf(' ')));
    if (head.startsWith('GET')) socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    else backends.push(socket.pause());
  });
  const { token } = await spawnReady(fixture, program);
  const { client, sideOfProxy } = await stalledPost(fixture, token, backends);
  // The proxy has the whole body, and its connection to the backend has not accepted the end of it.
  expect(sideOfProxy.isPaused()).toBe(true);
  const stalled = backends.at(-1)!;
  stalled.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  const [answer] = (await once(client, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nok$/);
  client.write(`GET /${token}/ HTTP/1.1\r\nHost: a\r\n\r\n`);
  const [next] = (await once(client, 'data')) as [Buffer];
  expect(next.toString()).toMatch(/^HTTP\/1\.1 204/);
  expect(heads.at(-1)).toBe('GET');
  client.destroy();
});

/** Posts bodies to a backend that does not read, until the proxy has to wait at the very end of one. */
async function stalledPost(fixture: Fixture, token: string, backends: readonly Socket[]) {
  const first = await post(fixture, token, { length: maxBodyBytes, backends });
  first.client.destroy();
  // The system's buffers are about as large for the next connections.
  for (let steps = 0; steps < 40; steps += 1) {
    const change = Math.ceil(steps / 2) * (steps % 2 === 0 ? 1 : -1);
    const length = first.sentBytes + change * stepBytes;
    const { client, sideOfProxy, sentBytes } = await post(fixture, token, { length, backends });
    if (sentBytes === length && sideOfProxy.isPaused()) return { client, sideOfProxy };
    client.destroy();
  }
  throw new Error('The proxy never waited at the end of a body');
}

/** Posts a body step by step, until the proxy stops to read it. */
async function post(
  fixture: Fixture,
  token: string,
  { length, backends }: { readonly length: number; readonly backends: readonly Socket[] },
) {
  const accepted = once(fixture.server, 'connection') as Promise<[Socket]>;
  const client = await connected(fixture.port);
  const [sideOfProxy] = await accepted;
  const head = `POST /${token}/ HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`;
  const count = backends.length;
  client.write(head);
  await until(() => backends.length > count);
  let sentBytes = 0;
  while (sentBytes < length && !sideOfProxy.isPaused()) {
    sentBytes += stepBytes;
    client.write(Buffer.alloc(stepBytes, 'x'));
    await until(() => sideOfProxy.bytesRead >= head.length + sentBytes);
  }
  return { client, sideOfProxy, sentBytes };
}

test('an upload that arrives while its session is looked up is read on when the backend is known', async () => {
  await using store = await openTestStore();
  let isSlow = false;
  const slow = steered(store, {
    onCall: async ({ run }) => {
      if (isSlow) await delay(300);
      return await run();
    },
  });
  await using fixture = await openFixture({ store: slow });
  let received = 0;
  await using program = await startProgram((request, response) => {
    request.on('data', (chunk: Buffer) => (received += chunk.length)).once('end', () => response.end('done'));
  });
  const { backend, token } = await spawnReady(fixture, program);
  // So that the proxy has an idle connection to the backend.
  expect(await status(fixture, token)).toBe(200);
  const other = newToken();
  await fixture.store.insert(routes, newRoute(other, { backend }));
  isSlow = true;
  const body = Buffer.alloc(1024 * 1024);
  const outgoing = send(`${fixture.url}/${other}/`, { method: 'POST', agent: false });
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  answer.resume();
  expect([answer.statusCode, received]).toEqual([200, body.length]);
});
