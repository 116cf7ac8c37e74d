/** A gated server with TLS: its certificates, its protocols, and connections without TLS. */
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { beforeAll, expect, test } from 'vitest';
import type { CertificatePair } from '../tls/certificate-pair.ts';
import { SecureContexts } from '../tls/secure-contexts.ts';
import { newPair } from '../tls/testing/new-pair.ts';
import { newGatedServer } from './gated-server.ts';
import { Http2Connections } from './http2/http2-connections.ts';
import { listen } from './listener.ts';

let api: CertificatePair;
let sessions: CertificatePair;
let renewed: CertificatePair;
beforeAll(async () => {
  [api, sessions, renewed] = await Promise.all([
    newPair(['api.example']),
    newPair(['*.sessions.example']),
    newPair(['renewed.example']),
  ]);
});

async function open({ hasHttp2 = true, hstsSeconds = 0 } = {}) {
  const contexts = new SecureContexts([api, sessions]);
  const gate = newGatedServer({}, { contexts, hstsSeconds, ...(hasHttp2 && { http2: Http2Connections }) });
  gate.open({ handle: (_request, response) => void response.end('answered') });
  const listener = await listen(gate.server, {
    host: '127.0.0.1',
    port: 0,
    drainMs: 50,
    otherConnections: gate.otherConnections,
  });
  const dial = async (options: ConnectionOptions = {}) => {
    const socket = connect({ host: '127.0.0.1', port: listener.port, rejectUnauthorized: false, ...options });
    socket.on('error', () => {});
    await once(socket, 'secureConnect');
    return socket;
  };
  return { contexts, listener, dial };
}

function namesOf(socket: TLSSocket): string | undefined {
  const { subjectaltname } = socket.getPeerCertificate();
  socket.destroy();
  return subjectaltname;
}

async function answerOn(socket: TLSSocket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  let answer = '';
  for await (const bytes of socket) answer += (bytes as Buffer).toString();
  return answer;
}

test('clients get the certificate for the name they ask for, or the first one', async () => {
  const { listener, dial } = await open();
  await using _ = listener;
  expect(namesOf(await dial({ servername: 'api.example' }))).toBe('DNS:api.example');
  expect(namesOf(await dial({ servername: 'a.sessions.example' }))).toBe('DNS:*.sessions.example');
  expect(namesOf(await dial({ servername: 'a.b.sessions.example' }))).toBe('DNS:api.example');
  expect(namesOf(await dial({ servername: 'other.example' }))).toBe('DNS:api.example');
  expect(namesOf(await dial())).toBe('DNS:api.example');
});

test('new connections use the new certificates, and open connections continue', async () => {
  const { contexts, listener, dial } = await open();
  await using _ = listener;
  const before = await dial({ servername: 'api.example' });
  contexts.replace([renewed, sessions]);
  expect(namesOf(await dial({ servername: 'api.example' }))).toBe('DNS:renewed.example');
  expect(namesOf(await dial())).toBe('DNS:renewed.example');
  expect(await answerOn(before)).toContain('answered');
});

test('answers ask browsers to use only TLS for the configured time, if there is one', async () => {
  const asking = await open({ hstsSeconds: 60 });
  await using _asking = asking.listener;
  const silent = await open();
  await using _silent = silent.listener;
  expect(await answerOn(await asking.dial())).toMatch(/^strict-transport-security: max-age=60\r$/im);
  expect(await answerOn(await silent.dial())).not.toMatch(/^strict-transport-security:/im);
});

test('clients choose between HTTP/2 and HTTP/1.1, if HTTP/2 is offered', async () => {
  const both = await open();
  await using _both = both.listener;
  const one = await open({ hasHttp2: false });
  await using _one = one.listener;
  const chosen = async ({ dial }: typeof both, ALPNProtocols?: string[]) => {
    const socket = await dial(ALPNProtocols && { ALPNProtocols });
    socket.destroy();
    return socket.alpnProtocol;
  };
  expect(await chosen(both, ['http/1.1', 'h2'])).toBe('h2');
  expect(await chosen(both, ['http/1.1'])).toBe('http/1.1');
  expect(await chosen(both)).toBe(false);
  expect(await chosen(one, ['h2', 'http/1.1'])).toBe('http/1.1');
});

test('TLS below 1.2 and weak ciphers are rejected', async () => {
  const { listener, dial } = await open();
  await using _ = listener;
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  await expect(dial(old)).rejects.toThrow(/protocol version/);
  await expect(dial({ maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA:ECDHE-ECDSA-AES128-SHA' })).rejects.toThrow(
    /handshake failure/,
  );
  const socket = await dial({ maxVersion: 'TLSv1.2' });
  expect(socket.getCipher().name).toMatch(/^ECDHE-ECDSA-.*(?:GCM|POLY1305)/);
  socket.destroy();
});

test('connections without TLS are closed, and closing does not wait for silent ones', async () => {
  const { listener, dial } = await open();
  const plain = connectTcp(listener.port, '127.0.0.1');
  plain.on('error', () => {});
  plain.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(plain, 'close');
  const silent = connectTcp(listener.port, '127.0.0.1');
  await once(silent, 'connect');
  const idle = await dial({ ALPNProtocols: ['h2'] });
  const ended = Promise.all([once(silent, 'close'), once(idle, 'close')]);
  await listener[Symbol.asyncDispose]();
  idle.destroy();
  await ended;
  expect(silent.destroyed).toBe(true);
});
