/** Other protocols, forged Host headers, pipelined requests. */
import { expect, test } from 'vitest';
import { sha256 } from '../../kit/registry/registry.ts';
import { statusAndCode, waitMs } from '../fixture.ts';
import type { Fixture } from '../fixture.ts';

const control = `/v2/home/control/blobs/${sha256('still here')}`;

export function declareTransport(fixture: Fixture): void {
  test('TLS, noise and half a request are rejected', async () => {
    for (const bytes of [
      Buffer.from('16030100b9010000b50303', 'hex'),
      Buffer.alloc(10_000, 0),
      Buffer.alloc(10_000, 0xff),
      Buffer.from('SSH-2.0-x\r\n'),
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      Buffer.from(`GET /v2/ HTTP/9.9\r\nhost: x\r\n\r\n`),
      Buffer.from('GET /v2/ HTTP/1.1\r\n\r\n'),
      Buffer.from(`GET /v2/ HTTP/1.1\r\nhost: x\r\n${'x'.repeat(40_000)}: y\r\n\r\n`),
      Buffer.from('GET /v2/ HTTP/1.1\r\nhost: x\r\nbad header: y\r\n\r\n'),
      Buffer.from('CONNECT evil.example:443 HTTP/1.1\r\nhost: x\r\n\r\n'),
    ]) {
      const connection = await fixture.connect();
      connection.write(bytes);
      const answer = await connection.rest();
      expect([bytes.subarray(0, 20).toString('latin1'), answer]).toEqual([
        bytes.subarray(0, 20).toString('latin1'),
        expect.stringMatching(/^(?:HTTP\/1\.1 4|$)/),
      ]);
    }
    const half = await fixture.connect();
    half.write('GET /v2/ HTTP/1.1\r\nhost: x\r\nauthorization: Basic ');
    await half.cut();
  });

  test('neither the Host header nor the headers of proxies determine the URLs in a response', async () => {
    const forged = [
      'x-forwarded-host: evil.example',
      'x-forwarded-proto: https',
      'forwarded: host=evil.example',
      'x-original-url: /x',
    ];
    const begun = await fixture.raw('POST /v2/home/hosts/blobs/uploads/ HTTP/1.1', [...forged, 'content-length: 0']);
    const location = /^location: (.*)\r$/im.exec(begun)?.[1] ?? '';
    expect(location).toMatch(/^\/v2\/home\/hosts\/blobs\/uploads\/[a-f0-9-]{36}$/);
    expect((await fixture.send(location, { method: 'DELETE' })).status).toBe(204);
    const challenge = await fixture.send('/v2/', {
      headers: { authorization: '', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
    });
    expect(challenge.headers['www-authenticate']).toContain(`realm="http://127.0.0.1:${fixture.port}/token"`);
    for (const host of ['a"b', 'a,b', 'user@evil', 'evil/x', 'a b', '"', "a'b"]) {
      const answer = await fixture.send('/v2/', { headers: { authorization: '', host } });
      expect([host, answer.status, answer.headers['www-authenticate']]).toEqual([host, 400, undefined]);
    }
  });

  test('pipelined requests are answered one by one, in order', async () => {
    const connection = await fixture.connect();
    const request = (path: string, more = '') =>
      `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${fixture.authorization}\r\n${more}\r\n`;
    const paths = Array.from({ length: 200 }, (_, at) =>
      at % 2 === 0 ? control : `/v2/home/control/tags/list?n=${at}`,
    );
    connection.write(paths.map((path) => request(path)).join('') + request('/v2/', 'connection: close\r\n'));
    const statuses = Array.from((await connection.rest()).matchAll(/HTTP\/1\.1 ([0-9]{3}) /g), ([, status]) => status);
    expect(statuses).toEqual([...paths.map((path) => (path === control ? '200' : '404')), '200']);
  });

  test('an upgrade is ignored, and Expect: 100-continue is answered', async () => {
    const upgrade = ['upgrade: websocket', 'sec-websocket-key: x', 'sec-websocket-version: 13'];
    const answer = await fixture.raw(`GET ${control} HTTP/1.1`, upgrade);
    expect([statusAndCode(answer)[0], answer.endsWith('still here')]).toEqual([200, true]);
    const waiting = await fixture.connect();
    const path = `/v2/home/hosts/blobs/uploads/?digest=${sha256('after')}`;
    waiting.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: ${fixture.authorization}\r\n`);
    waiting.write('expect: 100-continue\r\ncontent-length: 5\r\nconnection: close\r\n\r\n');
    await expect.poll(() => waiting.received, { timeout: waitMs }).toMatch(/^HTTP\/1\.1 100 /);
    waiting.write('after');
    expect(await waiting.rest()).toContain('HTTP/1.1 201 ');
  });

  test('a thousand unauthorized requests leak no files or sockets', async () => {
    for (let at = 0; at < 1_000; at += 100) {
      const answers = await Promise.all(
        Array.from(
          { length: 100 },
          async (_, i) =>
            await fixture.send(`/v2/home/control/blobs/${sha256(String(at + i))}`, {
              headers: { authorization: `Bearer ${'x'.repeat(1_000)}` },
            }),
        ),
      );
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    }
  });
}
