import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as secure, createServer as createTlsServer } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { systemClock } from '../clock/system-clock.ts';
import { PlatformSecret } from '../secret/platform-secret.ts';
import { linkConnect } from './link-client.ts';
import { handshakeLimitMs, maxHandshakes, openLinkServer } from './link-server.ts';
import type { IncomingLink, LinkServer } from './link-server.ts';
import { linkIdentity, linkTerms } from './link-terms.ts';

const secret = new PlatformSecret(randomBytes(32));
const never = new AbortController().signal;

async function openTestServer(clock = systemClock): Promise<LinkServer & { links: IncomingLink[] }> {
  const links: IncomingLink[] = [];
  const onConnection = (link: IncomingLink) => void links.push(link);
  const server = await openLinkServer({ secret, host: '127.0.0.1', port: 0, clock, onConnection });
  return { ...server, links };
}

function linkTo(port: number, has = secret): Promise<TLSSocket> {
  return linkConnect({ secret: has, host: '127.0.0.1', port, signal: never });
}

async function eventually(holds: () => boolean): Promise<void> {
  const endMs = Date.now() + 10_000;
  while (!holds()) {
    if (Date.now() > endMs) throw new Error(`Never came true: ${holds.toString()}`);
    await systemClock.sleep(5);
  }
}

/** The received bytes until the other side closes, and the error if there is one. */
async function rest(socket: Socket): Promise<{ bytes: Buffer; error: string | undefined }> {
  const chunks: Buffer[] = [];
  let error: string | undefined;
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', (cause: NodeJS.ErrnoException) => (error = cause.code ?? cause.message));
  if (!socket.closed) await new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  return { bytes: Buffer.concat(chunks), error };
}

test('each link is encrypted with its own key, and carries bytes both ways', async () => {
  await using server = await openTestServer();
  const link = await linkTo(server.port);
  await eventually(() => server.links.length === 1);
  const [{ socket }] = server.links as [IncomingLink];
  expect(link.getProtocol()).toBe('TLSv1.3');
  // Without a key exchange per link, a leaked secret would decrypt recorded traffic.
  expect(link.getEphemeralKeyInfo()).toHaveProperty('name');
  link.end('hello');
  expect(await text(socket)).toBe('hello');
  socket.end('bye');
  expect(await text(link)).toBe('bye');
});

test('each direction of a link may end on its own', async () => {
  await using server = await openTestServer();
  const link = await linkTo(server.port);
  await eventually(() => server.links.length === 1);
  const [{ socket }] = server.links as [IncomingLink];
  link.end('all bytes');
  expect(await text(socket)).toBe('all bytes');
  socket.write('still ');
  await once(link, 'readable');
  socket.end('talking');
  expect(await text(link)).toBe('still talking');
});

test('a link that is reset does not look ended', async () => {
  await using server = await openTestServer();
  const [broken, closed] = [await linkTo(server.port), await linkTo(server.port)];
  await eventually(() => server.links.length === 2);
  server.links[0]?.reset();
  expect(await rest(broken)).toMatchObject({ error: 'ECONNRESET' });
  const closing = rest(closed);
  await server[Symbol.asyncDispose]();
  expect(await closing).toMatchObject({ error: 'ECONNRESET' });
});

test('rejects clients without the secret, and sends them nothing', async () => {
  await using server = await openTestServer();
  const { port } = server;
  await expect(linkTo(port, new PlatformSecret(randomBytes(32)))).rejects.toThrow(/alert|SSL/i);
  for (const terms of [
    { rejectUnauthorized: false },
    { ...linkTerms, rejectUnauthorized: false },
    { ...linkTerms, pskCallback: () => ({ psk: randomBytes(32), identity: 'another identity' }) },
    { ...linkTerms, pskCallback: () => ({ psk: Buffer.alloc(32), identity: linkIdentity }) },
    { maxVersion: 'TLSv1.2' as const, ciphers: 'PSK', pskCallback: () => ({ psk: Buffer.alloc(32), identity: 'x' }) },
  ]) {
    const client = secure({ host: '127.0.0.1', port, checkServerIdentity: () => undefined, ...terms });
    let isSecure = false;
    client.on('secureConnect', () => (isSecure = true));
    const { bytes } = await rest(client);
    expect([isSecure, bytes.length]).toEqual([false, 0]);
  }
  const plain = connect(port, '127.0.0.1');
  plain.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const { bytes } = await rest(plain);
  // A TLS alert: two bytes in a record of seven.
  expect(bytes.length).toBeLessThanOrEqual(7);
  expect(server.links).toEqual([]);
});

test('replayed bytes open no link', async () => {
  await using server = await openTestServer();
  const recorded: Buffer[] = [];
  const tap = createTcpServer((socket) => {
    const onward = connect(server.port, '127.0.0.1');
    socket.on('data', (chunk) => recorded.push(chunk));
    for (const each of [socket, onward]) each.on('error', () => each.destroy());
    socket.pipe(onward).pipe(socket);
  });
  await new Promise<void>((resolve) => tap.listen(0, '127.0.0.1', resolve));
  const link = await linkTo((tap.address() as AddressInfo).port);
  link.write('CONNECT something HTTP/1.1\r\n\r\n');
  await eventually(() => server.links.length === 1);
  await once(server.links[0]?.socket as Socket, 'readable');
  link.destroy();
  tap.close();
  expect(Buffer.concat(recorded).includes('CONNECT')).toBe(false);
  const replay = connect(server.port, '127.0.0.1');
  for (const chunk of recorded) replay.write(chunk);
  await rest(replay);
  expect(server.links).toHaveLength(1);
});

test('sends nothing to a server without the secret, whatever certificate it presents', async () => {
  const impostor = createTlsServer({ key: impostorKey, cert: impostorCertificate });
  const received: Buffer[] = [];
  impostor.on('secureConnection', (socket) => socket.on('data', (chunk) => received.push(chunk)));
  impostor.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve));
  const { port } = impostor.address() as AddressInfo;
  await expect(linkTo(port)).rejects.toThrow(/certificate|alert|SSL/i);
  impostor.close();
  expect(received).toEqual([]);
});

test('a handshake that does not finish is closed in time', async () => {
  const clock = new ManualClock();
  await using server = await openTestServer(clock);
  const link = await linkTo(server.port);
  await eventually(() => server.links.length === 1);
  const silent = connect(server.port, '127.0.0.1');
  await once(silent, 'connect');
  await clock.advance(handshakeLimitMs);
  expect((await rest(silent)).bytes).toHaveLength(0);
  link.write('still there');
  const [words] = (await once(server.links[0]?.socket as Socket, 'data')) as [Buffer];
  expect(words.toString()).toBe('still there');
  link.destroy();
});

test('connections without a handshake do not block links', async () => {
  await using server = await openTestServer(new ManualClock());
  let open = 0;
  const silentClients = Array.from({ length: maxHandshakes + 20 }, () => {
    const socket = connect(server.port, '127.0.0.1', () => (open += 1));
    socket.on('close', () => (open -= 1));
    socket.on('error', () => {});
    return socket.resume();
  });
  await eventually(() => open === maxHandshakes);
  const link = await linkTo(server.port);
  await eventually(() => server.links.length === 1);
  expect(open).toBeLessThanOrEqual(maxHandshakes);
  link.destroy();
  for (const socket of silentClients) socket.destroy();
});

test('a signal aborts the handshake', async () => {
  const silent = createTcpServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const wanted = new AbortController();
  const { port } = silent.address() as AddressInfo;
  const link = linkConnect({ secret, host: '127.0.0.1', port, signal: wanted.signal });
  const [accepted] = (await once(silent, 'connection')) as [Socket];
  wanted.abort(new Error('not any more'));
  await expect(link).rejects.toThrow('not any more');
  accepted.resume();
  await once(accepted, 'close');
  silent.close();
  await expect(linkTo(port)).rejects.toThrow('ECONNREFUSED');
});

/** For a server that has a certificate for 127.0.0.1, but not the secret. */
const impostorKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtihmO7DoAvddifDF
heUbpxklxvOB/oDTxD9MjNa1bnOhRANCAAS4ICEET32CEMOO6bY1/aPVhVsatP7k
pG1sdqfFCM1nP2CS9xm2XKpdoemY/orutLPyofDFADDCeuufR16lmpwR
-----END PRIVATE KEY-----`;

const impostorCertificate = `-----BEGIN CERTIFICATE-----
MIIBjjCCATSgAwIBAgIUfnHtVgGdniJ32KFbW3JBsvQ5/TkwCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIaW1wb3N0b3IwIBcNMjYxMTIxMDQ1NTM1WhgPMjEyNjEwMjgw
NDU1MzVaMBMxETAPBgNVBAMMCGltcG9zdG9yMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEuCAhBE99ghDDjum2Nf2j1YVbGrT+5KRtbHanxQjNZz9gkvcZtlyqXaHp
mP6K7rSz8qHwxQAwwnrrn0depZqcEaNkMGIwHQYDVR0OBBYEFJnw/Q5aovdA2XY9
QvalWZ6BW5PoMB8GA1UdIwQYMBaAFJnw/Q5aovdA2XY9QvalWZ6BW5PoMA8GA1Ud
EwEB/wQFMAMBAf8wDwYDVR0RBAgwBocEfwAAATAKBggqhkjOPQQDAgNIADBFAiBw
tkF/EtWAm0D/qrFe1NqIYUfCSKy+kx6fxtINQdkYhQIhAJbikbX/cyweIstxrRLY
TFcK5bhOasx0PtQbLl1u2+WL
-----END CERTIFICATE-----`;
