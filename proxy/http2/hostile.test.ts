// Takes about 4 s
/** HTTP/2 from hostile clients: malformed requests reach no backend, and floods end their connection and leave nothing open. */
import { beforeAll, expect, test } from 'vitest';
import type { CertificatePair } from '../../core/tls/certificate-pair.ts';
import { newPair } from '../../core/tls/testing/new-pair.ts';
import { openFixture, spawnReady, startMirror, startProgram, until } from '../testing/fixture.ts';
import type { Fixture, Seen } from '../testing/fixture.ts';
import { endHeaders, endStream, frame, FrameClient, frameTypes, headerBlock } from '../testing/http2-frames.ts';

let certificate: CertificatePair;
beforeAll(async () => {
  certificate = await newPair(['127.0.0.1']);
});

interface Parts {
  readonly method: string[];
  readonly scheme: string[];
  readonly authority: string[];
  readonly path: string[];
}

/** The head of a request, with some of its pseudo-headers replaced. */
function head({ port }: Fixture, token: string, changes: Partial<Parts> = {}): string[] {
  const parts: Parts = {
    method: [':method', 'GET'],
    scheme: [':scheme', 'https'],
    authority: [':authority', `127.0.0.1:${port}`],
    path: [':path', `/${token}/`],
    ...changes,
  };
  return [...parts.method, ...parts.scheme, ...parts.authority, ...parts.path];
}

type Case = [name: string, headers: (valid: string[], fixture: Fixture, token: string) => string[]];

/** nghttp2 drops such headers, and Node has no option to refuse the request. */
const dropped: readonly Case[] = [
  ['CR and LF in a value', (valid) => [...valid, 'x-a', '1\r\nx-verified-username: eve']],
  ['LF in a value', (valid) => [...valid, 'x-a', '1\nx-verified-username: eve']],
  ['NUL in a value', (valid) => [...valid, 'x-a', '1\0']],
  ['CR and LF in a name', (valid) => [...valid, 'x-a\r\nx-verified-username', 'eve']],
  ['a colon in a name', (valid) => [...valid, 'x-verified-username: eve', '']],
  ['an empty name', (valid) => [...valid, '', 'eve']],
];

const malformed: readonly Case[] = [
  ['a name in upper case', (valid) => [...valid, 'X-Verified-Username', 'eve']],
  ['a transfer coding', (valid) => [...valid, 'transfer-encoding', 'chunked']],
  ['a connection option', (valid) => [...valid, 'connection', 'close']],
  ['an upgrade', (valid) => [...valid, 'upgrade', 'websocket']],
  ['te with another value', (valid) => [...valid, 'te', 'chunked']],
  ['two lengths', (valid) => [...valid, 'content-length', '0', 'content-length', '0']],
  ['a length that is no number', (valid) => [...valid, 'content-length', '+0']],
  ['a length without a body', (valid) => [...valid, 'content-length', '3']],
  ['two paths', (valid) => [...valid, ':path', '/other']],
  ['an unknown pseudo-header', (valid) => [...valid, ':x', '1']],
  ['a pseudo-header after a header', (valid) => [...valid.slice(2), 'x-a', '1', ':method', 'GET']],
  ['no path', (_valid, fixture, token) => head(fixture, token, { path: [] })],
  ['an empty path', (_valid, fixture, token) => head(fixture, token, { path: [':path', ''] })],
  ['a space in the path', (_valid, f, token) => head(f, token, { path: [':path', `/${token}/ HTTP/1.1\r\n`] })],
  ['no method', (_valid, fixture, token) => head(fixture, token, { method: [] })],
  ['a line break in the method', (_valid, f, token) => head(f, token, { method: [':method', 'GET / HTTP/1.1\r\n'] })],
  ['a host that differs from the authority', (valid) => [...valid, 'host', 'other.example']],
  ['two hosts', (_valid, f, token) => [...head(f, token, { authority: [] }), 'host', 'a', 'host', 'b']],
  ['no host', (_valid, fixture, token) => head(fixture, token, { authority: [] })],
  ['a tunnel', (_valid, f, token) => head(f, token, { method: [':method', 'CONNECT'], scheme: [], path: [] })],
  ['a WebSocket', (valid) => [':method', 'CONNECT', ':protocol', 'websocket', ...valid.slice(2)]],
];

test('malformed requests reach no backend', async () => {
  let requests = 0;
  await using program = await startProgram((_request, response) => {
    requests += 1;
    response.end();
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  const outcomes: Record<string, string | undefined> = {};
  for (const [name, headers] of malformed) {
    using client = await FrameClient.open(fixture.port);
    client.request(1, headers(head(fixture, token), fixture, token));
    await until(() => client.outcome(1) !== undefined);
    outcomes[name] = client.outcome(1);
  }
  const accepted = Object.entries(outcomes).filter(
    ([, each]) => each !== 'reset 1' && each !== 'status 400' && each !== 'closed',
  );
  expect(accepted).toEqual([]);
  expect(requests).toBe(0);
  // The same head without a change is valid.
  using client = await FrameClient.open(fixture.port);
  client.request(1, head(fixture, token));
  await until(() => client.outcome(1) === 'status 200');
  expect(requests).toBe(1);
});

test('headers with bytes that end a line reach no backend', async () => {
  await using mirror = await startMirror();
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, mirror);
  const names = async (headers: string[]) => {
    using client = await FrameClient.open(fixture.port);
    client.request(1, headers);
    await until(() => client.frames.some(({ type, flags }) => type === frameTypes.data && flags === endStream));
    const { rawHeaders } = JSON.parse(client.body(1)) as Seen;
    return rawHeaders.filter((_, i) => i % 2 === 0);
  };
  const valid = await names(head(fixture, token));
  for (const [name, headers] of dropped) {
    expect([name, await names(headers(head(fixture, token), fixture, token))]).toEqual([name, valid]);
  }
});

test.each([
  ['more than its length', 'abcd'],
  ['less than its length', 'ab'],
])('a body with %s is not complete at the backend', async (_name, body) => {
  const ends: string[] = [];
  await using program = await startProgram((request) => {
    request
      .resume()
      .on('end', () => ends.push('complete'))
      .on('error', () => ends.push('cut'));
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  using client = await FrameClient.open(fixture.port);
  const post = head(fixture, token, { method: [':method', 'POST'] });
  client.request(1, [...post, 'content-length', '3'], { isComplete: false });
  client.send(frameTypes.data, { stream: 1, flags: endStream, payload: Buffer.from(body) });
  await until(() => client.isGone || client.outcome(1) === 'reset 1');
  await until(() => Object.keys(fixture.reports.at(-1) ?? {}).length === 0);
  expect(ends).not.toContain('complete');
});

/** Floods of frames, each of which a server could answer or remember. */
const floods: readonly [name: string, bytes: (fixture: Fixture, token: string) => Buffer][] = [
  [
    'requests that are reset at once (CVE-2023-44487)',
    (fixture, token) =>
      Buffer.concat(
        Array.from({ length: 1_000 }, (_, i) => {
          const stream = 2 * i + 1;
          const payload = headerBlock(head(fixture, token));
          return Buffer.concat([
            frame(frameTypes.headers, { stream, flags: endHeaders | endStream, payload }),
            frame(frameTypes.rstStream, { stream, flags: 0, payload: Buffer.from([0, 0, 0, 8]) }),
          ]);
        }),
      ),
  ],
  [
    'a head without an end (CVE-2024-27316)',
    (fixture, token) => {
      const payload = headerBlock(head(fixture, token));
      const more = headerBlock(['x-a', 'a'.repeat(8_000)]);
      const continuations = Array.from({ length: 500 }, () =>
        frame(frameTypes.continuation, { stream: 1, flags: 0, payload: more }),
      );
      return Buffer.concat([frame(frameTypes.headers, { stream: 1, flags: 0, payload }), ...continuations]);
    },
  ],
  [
    'a head of empty parts',
    (fixture, token) => {
      const payload = headerBlock(head(fixture, token));
      const empty = frame(frameTypes.continuation, { stream: 1, flags: 0, payload: Buffer.alloc(0) });
      return Buffer.concat([
        frame(frameTypes.headers, { stream: 1, flags: 0, payload }),
        ...Array.from({ length: 5_000 }, () => empty),
      ]);
    },
  ],
];

test.each(floods)('%s end the connection', async (_name, bytes) => {
  await using mirror = await startMirror();
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, mirror);
  using client = await FrameClient.open(fixture.port);
  client.socket.write(bytes(fixture, token));
  await until(() => client.isGone);
  client.socket.destroy();
  await until(() => Object.keys(fixture.reports.at(-1) ?? {}).length === 0);
  using next = await FrameClient.open(fixture.port);
  next.request(1, head(fixture, token));
  await until(() => next.outcome(1) !== undefined);
  expect(next.outcome(1)).toBe('status 200');
});

test.each([
  ['settings', frameTypes.settings, 0, Buffer.alloc(0)],
  ['pings', frameTypes.ping, 0, Buffer.alloc(8)],
])('a client that sends %s and reads no answers is disconnected', async (_name, type, stream, payload) => {
  await using fixture = await openFixture({ certificate });
  using client = await FrameClient.open(fixture.port);
  client.socket.pause();
  const flood = Buffer.concat(Array.from({ length: 10_000 }, () => frame(type, { stream, flags: 0, payload })));
  // More than the kernel buffers.
  const { socket } = client;
  for (let i = 0; i < 200 && !client.isClosed; i += 1) {
    if (!socket.write(flood)) await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
  }
  await until(() => client.isClosed);
  expect(client.isClosed).toBe(true);
});

test('more streams at a time than allowed are refused', async () => {
  let isHeld = true;
  await using program = await startProgram((_request, response) => void (isHeld || response.end()));
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  using client = await FrameClient.open(fixture.port);
  for (let i = 0; i < 200; i += 1) client.request(2 * i + 1, head(fixture, token));
  await until(() => client.isGone || client.outcome(399) !== undefined);
  expect(client.isGone || client.outcome(399) === 'reset 7').toBe(true);
  isHeld = false;
});
