// Takes about 6 s
/** HTTP/2 from clients: each stream is an exchange like one of HTTP/1.1, with the same rules. */
import { once } from 'node:events';
import { connect, constants } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { beforeAll, expect, test } from 'vitest';
import type { CertificatePair } from '../../core/tls/certificate-pair.ts';
import { newPair } from '../../core/tls/testing/new-pair.ts';
import { endStream, FrameClient, frameTypes } from '../testing/http2-frames.ts';
import {
  openFixture,
  spawnReady,
  startMirror,
  startProgram,
  startRawProgram,
  until,
  valuesOf,
} from '../testing/fixture.ts';
import type { Fixture, Seen } from '../testing/fixture.ts';

let certificate: CertificatePair;
beforeAll(async () => {
  certificate = await newPair(['127.0.0.1']);
});

interface Client extends AsyncDisposable {
  readonly session: ClientHttp2Session;
  get(path: string, headers?: OutgoingHttpHeaders): Promise<Answer>;
}

interface Answer {
  readonly headers: Record<string, unknown>;
  readonly body: Buffer;
  readonly trailers: Record<string, unknown>;
}

async function clientOf({ url }: Fixture): Promise<Client> {
  const session = connect(url, { ca: certificate.certificate });
  await once(session, 'connect');
  return {
    session,
    get: async (path, headers = {}) => await answerOf(session.request({ ':path': path, ...headers })),
    [Symbol.asyncDispose]: async () => {
      session.destroy();
      await Promise.resolve();
    },
  };
}

/** The answer on a stream. Rejects if it is cut. The server may end the stream before the request has ended. */
async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  let headers = {};
  let trailers = {};
  stream.on('response', (head) => (headers = { ...head }));
  stream.on('trailers', (found) => (trailers = { ...found }));
  const parts: Buffer[] = [];
  stream.on('data', (part: Buffer) => parts.push(part));
  await once(stream, 'end');
  return { headers, body: Buffer.concat(parts), trailers };
}

/** A request of a client that writes frames itself. */
function post({ port }: Fixture, token: string): string[] {
  return [':method', 'POST', ':scheme', 'https', ':authority', `127.0.0.1:${port}`, ':path', `/${token}/`];
}

/** Whether the last report has no open connections. */
function nothingOpen({ reports }: Fixture): () => boolean {
  return () => Object.keys(reports.at(-1) ?? {}).length === 0;
}

test('a request reaches the backend as one of HTTP/1.1, with the headers of the platform and no forged ones', async () => {
  await using mirror = await startMirror();
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, mirror, { user: 'ada' });
  await using client = await clientOf(fixture);
  const { headers, body } = await client.get(`/${token}/a%2e?b`, {
    cookie: ['a=1', 'berth_session=secret', 'b=2'],
    'x-verified-username': 'eve',
    x_verified_username: 'eve',
    'x-forwarded-proto': 'http',
    'x-own': ['1', '2'],
    te: 'trailers',
  });
  expect(headers).toMatchObject({ ':status': 200, 'referrer-policy': 'same-origin' });
  expect(headers).not.toHaveProperty('connection');
  expect(headers).not.toHaveProperty('transfer-encoding');
  const seen = JSON.parse(body.toString()) as Seen;
  expect(seen).toMatchObject({ method: 'GET', url: '/a%2e?b' });
  expect(valuesOf(seen, 'host')).toEqual([`127.0.0.1:${fixture.port}`]);
  expect(valuesOf(seen, 'cookie')).toEqual(['a=1; b=2']);
  expect(valuesOf(seen, 'x-verified-username')).toEqual(['ada']);
  expect(valuesOf(seen, 'x_verified_username')).toEqual([]);
  expect(valuesOf(seen, 'x-forwarded-proto')).toEqual(['https']);
  expect(valuesOf(seen, 'x-forwarded-for')).toEqual(['127.0.0.1']);
  expect(valuesOf(seen, 'x-own')).toEqual(['1', '2']);
  expect(valuesOf(seen, 'te')).toEqual(['trailers']);
});

test('headers keep their bytes in both directions, and repeated headers of a backend stay apart', async () => {
  await using program = await startProgram((request, response) => {
    const text = request.headers['x-text'] as string;
    const headers = 'Set-Cookie a=1 Set-Cookie b=2 Content-Type text/a Content-Type text/b Connection x-hop X-Hop 1';
    response.writeHead(200, ['X-Text', text, ...headers.split(' ')]);
    response.end();
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  const { headers } = await client.get(`/${token}/`, { 'x-text': 'caf\u00e9' });
  expect(headers).toMatchObject({ 'x-text': 'caf\u00e9' });
  expect(headers['set-cookie']).toEqual([expect.stringMatching(/^a=1/), expect.stringMatching(/^b=2/)]);
  expect(headers).not.toHaveProperty('x-hop');
});

test('errors and redirects of the proxy are answered as in HTTP/1.1', async () => {
  await using mirror = await startMirror();
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, mirror);
  await using client = await clientOf(fixture);
  expect((await client.get('/nothing')).headers).toMatchObject({ ':status': 404, 'x-berth-error': 'not-found' });
  expect((await client.get(`/${token}`)).headers).toMatchObject({ ':status': 307, location: `${token}/` });
  expect((await client.get(`/${token}/`, { ':method': 'TRACE' })).headers).toMatchObject({ ':status': 400 });
});

test('many requests share a connection, and large bodies pass in both directions', async () => {
  await using program = await startProgram((request, response) => void pipeline(request, response));
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  const block = Buffer.alloc(64 * 1024, 'abcdefg');
  const blocks = Array.from({ length: 48 }, () => block);
  const echoed = Array.from({ length: 8 }, async () => {
    const stream = client.session.request({ ':method': 'POST', ':path': `/${token}/` });
    const answer = answerOf(stream);
    await pipeline(Readable.from(blocks), stream);
    return (await answer).body.equals(Buffer.concat(blocks));
  });
  expect(await Promise.all(echoed)).toEqual(echoed.map(() => true));
  await until(nothingOpen(fixture));
});

test('interim answers, and trailers in both directions, are forwarded without reserved headers', async () => {
  await using program = await startProgram((request, response) => {
    response.writeEarlyHints({ link: '</a.css>; rel=preload; as=style' });
    request.resume().once('end', () => {
      response.write('body');
      response.addTrailers({ 'x-sum': String(request.trailers['x-sum']), 'x-verified-username': 'eve' });
      response.end(JSON.stringify(request.rawTrailers));
    });
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  const stream = client.session.request(
    { ':method': 'POST', ':path': `/${token}/`, expect: '100-continue' },
    { waitForTrailers: true },
  );
  const interim: unknown[] = [];
  stream.on('headers', ({ ':status': status, link }) => interim.push(status, link));
  stream.once('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7', 'x-verified-username': 'eve' }));
  const answer = answerOf(stream);
  stream.end('x');
  const { body, trailers } = await answer;
  expect(body.toString()).toBe('body["x-sum","7"]');
  expect(trailers).toMatchObject({ 'x-sum': '7' });
  expect(trailers).not.toHaveProperty('x-verified-username');
  expect(interim).toEqual([100, undefined, 103, `</${token}/a.css>; rel=preload; as=style`]);
});

test('answers without a body end with their head', async () => {
  await using program = await startProgram((request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { etag: 'x' }).end();
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  for (const status of [204, 304, 200]) {
    const { headers, body } = await client.get(`/${token}/${status}`, { ':method': 'HEAD' });
    expect([headers[':status'], headers['etag'], body.length]).toEqual([status, 'x', 0]);
  }
  expect((await client.get(`/${token}/204`)).headers[':status']).toBe(204);
  await until(nothingOpen(fixture));
});

test.each([constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR])(
  'a request that its client resets (%i) ends at the backend without a complete body',
  async (code) => {
    const requests: string[] = [];
    await using program = await startProgram((request) => {
      requests.push('begun');
      request.on('end', () => requests.push('complete')).on('error', () => requests.push('cut'));
      request.resume();
    });
    await using fixture = await openFixture({ certificate });
    const { token } = await spawnReady(fixture, program);
    using client = await FrameClient.open(fixture.port);
    client.request(1, post(fixture, token), { isComplete: false });
    client.send(frameTypes.data, { stream: 1, payload: Buffer.from('the beginning') });
    await until(() => requests.length === 1);
    client.send(frameTypes.rstStream, { stream: 1, payload: Buffer.from([0, 0, 0, code]) });
    await until(() => requests.length === 2);
    expect(requests).toEqual(['begun', 'cut']);
    await until(nothingOpen(fixture));
    client.request(3, post(fixture, 'nothing'));
    await until(() => client.outcome(3) === 'status 404');
  },
);

test('an answer that ends before its request cuts the rest of the request, without an error for the client', async () => {
  let received = '';
  await using program = await startRawProgram((socket, requestHead) => {
    received = requestHead;
    socket.on('data', (bytes) => (received += bytes.toString()));
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nearly');
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  using client = await FrameClient.open(fixture.port);
  client.request(1, post(fixture, token), { isComplete: false });
  client.send(frameTypes.data, { stream: 1, payload: Buffer.from('the beginning') });
  await until(() => client.body(1) === 'early');
  await until(() => program.sockets.size === 0);
  expect(received).toContain('chunked');
  expect(received).not.toContain('0\r\n\r\n');
  const resets = () => client.frames.filter(({ type }) => type === frameTypes.rstStream);
  await until(() => resets().length === 1);
  expect(resets()[0]?.payload.readUInt32BE()).toBe(constants.NGHTTP2_NO_ERROR);
  expect(client.frames.findLast(({ type }) => type === frameTypes.data)?.flags).toBe(endStream);
  await until(nothingOpen(fixture));
});

test('a client that disconnects during an answer ends it at the backend, and its connection counts as open until then', async () => {
  let isOpen = false;
  await using program = await startProgram((_request, response) => {
    isOpen = true;
    response.write('the beginning');
    response.once('close', () => (isOpen = false));
  });
  await using fixture = await openFixture({ certificate });
  const { token, backend } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  const streams = Array.from({ length: 3 }, () => client.session.request({ ':path': `/${token}/` }));
  await Promise.all(streams.map(async (stream) => await once(stream, 'response')));
  await until(() => fixture.reports.at(-1)?.[backend] !== undefined);
  for (const stream of streams) stream.on('error', () => {});
  client.session.destroy();
  await until(() => !isOpen);
  await until(nothingOpen(fixture));
  expect(isOpen).toBe(false);
});

test('a backend that cuts its answer resets the stream: the answer does not look complete', async () => {
  await using program = await startRawProgram((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort');
    setImmediate(() => socket.destroy());
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  const stream = client.session.request({ ':path': `/${token}/` });
  await expect(answerOf(stream)).rejects.toThrow('NGHTTP2_INTERNAL_ERROR');
  await until(nothingOpen(fixture));
});

test('a slow client slows the backend down', async () => {
  let written = 0;
  const block = Buffer.alloc(1024 * 1024);
  await using program = await startProgram((_request, response) => {
    const source = function* () {
      for (let i = 0; i < 64; i += 1) {
        written += 1;
        yield block;
      }
    };
    void pipeline(Readable.from(source()), response).catch(() => {});
  });
  await using fixture = await openFixture({ certificate });
  const { token } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  const stream = client.session.request({ ':path': `/${token}/` });
  await once(stream, 'response');
  let before = -1;
  await until(async () => {
    const isStill = written === before && written > 0;
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return isStill;
  });
  expect(written).toBeLessThan(32);
  expect((await answerOf(stream)).body.length).toBe(64 * block.length);
});

test('a proxy that closes lets open streams end, and accepts no new ones', async () => {
  const finish = Promise.withResolvers<void>();
  await using program = await startProgram((_request, response) => {
    response.write('the beginning');
    void finish.promise.then(() => response.end(', the end'));
  });
  const fixture = await openFixture({ certificate, drain: { noticeMs: 0, deadlineMs: 5_000 }, drainMs: 5_000 });
  const { token } = await spawnReady(fixture, program);
  await using client = await clientOf(fixture);
  const stream = client.session.request({ ':path': `/${token}/` });
  await once(stream, 'response');
  const goneAway = once(client.session, 'goaway');
  const closed = fixture[Symbol.asyncDispose]();
  await goneAway;
  finish.resolve();
  expect((await answerOf(stream)).body.toString()).toBe('the beginning, the end');
  await closed;
});
