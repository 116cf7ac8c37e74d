import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openTestRegistry } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';
import { maxManifestBytes } from '../content/manifest.ts';

test('slow bodies of one account fill its share of the memory, which is free again when they end', async () => {
  await using registry = await openTestRegistry();
  // Two of the three bodies fit.
  const pushes = [1, 2, 3].map(() => beginPush(registry));
  const refused = await Promise.race(pushes.map(async ({ answer }, index) => ({ index, answer: await answer })));
  expect(refused.answer).toMatch(/^HTTP\/1\.1 429 /);
  expect(refused.answer).toMatch(/retry-after: \d/i);
  expect(refused.answer).toContain('TOOMANYREQUESTS');
  // Other accounts have their own share.
  const other = { authorization: registry.basic('other', await registry.addToken('other', ['push'])) };
  const accepted = await registry.send('/v2/other/draw/manifests/v1', { method: 'PUT', headers: other, body: '{}' });
  expect(accepted.status).toBe(400);
  const left = pushes.filter((_, index) => index !== refused.index);
  for (const { socket } of left) socket.write(' ');
  for (const { answer } of left) expect(await answer).toMatch(/^HTTP\/1\.1 400 /);
  const body = Buffer.alloc(maxManifestBytes, ' ');
  expect((await registry.as('/v2/acme/draw/manifests/v1', { method: 'PUT', body })).status).toBe(400);
});

/** Sends a manifest but for its last byte. */
function beginPush(registry: TestRegistry): { readonly socket: Socket; readonly answer: Promise<string> } {
  const socket = connect(registry.port, '127.0.0.1');
  socket.on('error', () => {});
  const head = [
    'PUT /v2/acme/draw/manifests/v1 HTTP/1.1',
    'host: x',
    `authorization: ${registry.basic('acme', registry.token)}`,
    `content-length: ${maxManifestBytes}`,
    'connection: close',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(Buffer.alloc(maxManifestBytes - 1, ' '));
  return { socket, answer: text(socket) };
}
