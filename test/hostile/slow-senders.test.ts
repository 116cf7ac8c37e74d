/** Clients that send very slowly, on a manual clock. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { listen, newServer } from '../../core/http/listener.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { openTestRegistry, sha256 } from '../kit/registry/registry.ts';
import type { TestRegistry } from '../kit/registry/registry.ts';

const minuteMs = 60_000;
const uploads = '/v2/acme/slow/blobs/uploads/';

/** The number of chunks that a slow client sends, one each minute. */
const maxDrops = 5;

describe.each(testDrivers().map((drivers) => ({ drivers, name: drivers === 'embedded' ? 'files' : 'GridFS' })))(
  'On $name',
  ({ drivers }) => {
    const clock = new ManualClock(new Date());
    let registry: TestRegistry;
    beforeAll(async () => {
      registry = await openTestRegistry({ drivers, clock });
    });
    afterAll(async () => await registry[Symbol.asyncDispose]());

    test('a slow upload is aborted after two minutes; it keeps its bytes, and can be continued', async () => {
      const location = String((await registry.as(uploads, { method: 'POST' })).headers.location);
      const trickle = new Readable({ read: () => {} });
      let cut: Awaited<ReturnType<TestRegistry['as']>> | undefined;
      const patch = registry.as(location, { method: 'PATCH', body: trickle }).then((answer) => (cut = answer));
      trickle.push('drop');
      let drops = 1;
      // Time before the registry reads, and while it processes bytes, does not count, so this may take more than two minutes. With a
      // drop in each minute, perhaps no minute would count.
      const minute = async () => {
        if (!cut && drops < maxDrops) {
          trickle.push('drop');
          drops += 1;
        }
        await clock.advance(minuteMs);
        return cut && [cut.status, cut.code, cut.headers.connection];
      };
      await expect.poll(minute).toEqual([408, 'UNSUPPORTED', 'close']);
      await patch;
      trickle.destroy();
      const status = await registry.as(location);
      const held = Number(String(status.headers.range).split('-')[1]) + 1;
      const sent = 'drop'.repeat(drops);
      const rest = sent.slice(held);
      const headers = { 'content-range': `${held}-${sent.length - 1}` };
      if (rest) expect((await registry.as(location, { method: 'PATCH', headers, body: rest })).status).toBe(202);
      const finished = await registry.as(`${location}?digest=${sha256(sent)}`, { method: 'PUT' });
      expect(finished.status).toBe(201);
    });

    test.each([
      ['a manifest', 'PUT', '/v2/acme/slow/manifests/v1', 'application/vnd.oci.image.manifest.v1+json'],
      ['a form', 'POST', '/token', 'application/x-www-form-urlencoded'],
      ['a whole blob', 'POST', `${uploads}?digest=${sha256('never')}`, 'application/octet-stream'],
    ])('%s that is sent slowly is aborted, too', async (_name, method, path, type) => {
      const trickle = new Readable({ read: () => {} });
      let cut: number | undefined;
      const done = registry
        .as(path, { method, headers: { 'content-type': type }, body: trickle })
        .then(({ status }) => (cut = status));
      trickle.push('{');
      // The time before the registry reads does not count.
      await expect
        .poll(async () => {
          await clock.advance(minuteMs);
          return cut;
        })
        .toBe(408);
      await done;
      trickle.destroy();
    });
  },
);

test('the server aborts a request whose head does not end', async () => {
  const server = newServer({ headersTimeout: 100, connectionsCheckingInterval: 20 });
  server.on('request', (_request, response) => response.end());
  await using listener = await listen(server, { host: '127.0.0.1', port: 0 });
  expect(newServer().headersTimeout).toBeGreaterThan(0);
  const socket = connect(listener.port, '127.0.0.1');
  const chunks: string[] = [];
  socket
    .setEncoding('latin1')
    .on('data', (chunk: string) => chunks.push(chunk))
    .on('error', () => {});
  socket.write('GET /v2/ HTTP/1.1\r\nhost: x\r\n');
  await once(socket, 'close');
  expect(chunks.join('')).toMatch(/^HTTP\/1\.1 408 /);
});
