/** Uploads by clients that send wrong lengths, disconnect, or write concurrently. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { sha256 } from '../../kit/registry/registry.ts';
import type { Answer } from '../../kit/registry/registry.ts';
import { statusAndCode, waitMs } from '../fixture.ts';
import type { Fixture } from '../fixture.ts';

export function declareUploads(fixture: Fixture): void {
  const head = (method: string, path: string, ...headers: string[]) =>
    `${[`${method} ${path} HTTP/1.1`, 'host: registry', `authorization: ${fixture.authorization}`, ...headers].join('\r\n')}\r\n\r\n`;

  const rangeOf = async (location: string) => (await fixture.send(location)).headers.range;

  /** Whether another request writes to an upload. The probe itself writes nothing, because its range is impossible. */
  const isBusy = async (location: string) => {
    const probe = { method: 'PATCH', headers: { 'content-range': '900000000-900000000' }, body: 'x' };
    return (await fixture.send(location, probe)).status === 409;
  };

  /** Starts to write to an upload. Retries if one of the probes kept the upload busy. */
  const beginWriting = async <W extends { readonly isAnswered: boolean }>(
    location: string,
    begin: () => Promise<W>,
  ) => {
    for (;;) {
      const writer = await begin();
      while (!writer.isAnswered) if (await isBusy(location)) return writer;
    }
  };

  test('a client that disconnects during a push, with a length or chunked, can continue from the reported range', async () => {
    const bytes = randomBytes(150_000);
    for (const encoding of ['content-length: 150000', 'transfer-encoding: chunked']) {
      const location = await fixture.begin('home/left');
      await fixture.send(location, { method: 'PATCH', body: bytes.subarray(0, 10_000) });
      const part = bytes.subarray(10_000, 90_000);
      const connection = await beginWriting(location, async () => {
        const begun = await fixture.connect();
        begun.write(head('PATCH', location, encoding));
        // The chunk is shorter than it announces.
        begun.write(encoding.startsWith('content') ? part : Buffer.concat([Buffer.from('249f0\r\n'), part]));
        return begun;
      });
      await connection.cut();
      const resume = async () => {
        const next = Number(String(await rangeOf(location)).split('-')[1]) + 1;
        const headers = { 'content-range': `${next}-149999` };
        return (await fixture.send(location, { method: 'PATCH', headers, body: bytes.subarray(next) })).status;
      };
      await expect.poll(resume, { timeout: waitMs }).toBe(202);
      expect((await fixture.send(`${location}?digest=${sha256(bytes)}`, { method: 'PUT' })).status).toBe(201);
    }
  });

  test('a hundred clients that disconnect during a single-request push leave no uploads', async () => {
    const digest = sha256('never whole');
    const connections = await Promise.all(
      Array.from({ length: 100 }, async (_, at) => {
        const connection = await fixture.connect();
        const path = `/v2/home/left/blobs/uploads/?digest=${digest}`;
        connection.write(head('POST', path, 'content-length: 100000'));
        connection.write(randomBytes(1_000 + at));
        return connection;
      }),
    );
    await expect.poll(async () => (await fixture.uploads()).length, { timeout: waitMs }).toBe(100);
    await Promise.all(connections.map(async (connection) => await connection.cut()));
  });

  test('wrong and ambiguous lengths are rejected', async () => {
    const location = await fixture.begin('home/lies');
    // More bytes than announced: the rest is not a valid request.
    const more = await fixture.connect();
    more.write(head('PATCH', location, 'content-length: 3'));
    more.write('abcdefghij\r\n\r\n');
    expect(await more.rest()).toContain('HTTP/1.1 400 ');
    const isFree = async () => (await fixture.send(location, { method: 'PATCH', body: '' })).status;
    await expect.poll(isFree, { timeout: waitMs }).toBe(202);
    const held = await rangeOf(location);
    expect(held).toBeOneOf(['0-0', '0-2']);
    // Two lengths, or a length and chunks, which two parsers could read as different requests.
    for (const lengths of [
      ['content-length: 3', 'content-length: 4'],
      ['content-length: 3', 'transfer-encoding: chunked'],
      ['content-length: -1'],
      ['content-length: 3x'],
      ['content-length: 99999999999999999999999'],
      ['transfer-encoding: chunked, identity'],
    ]) {
      const answer = await fixture.raw(`PATCH ${location} HTTP/1.1`, lengths, '0\r\n\r\n');
      expect([lengths, statusAndCode(answer)[0]]).toEqual([lengths, 400]);
    }
    expect(await rangeOf(location)).toBe(held);
    expect((await fixture.send(location, { method: 'DELETE' })).status).toBe(204);
  });

  test('of two concurrent writers, the first succeeds, and no byte of the other is stored', async () => {
    const location = await fixture.begin('home/race');
    const first = await beginWriting(
      location,
      async () => new SlowWriter((body) => fixture.send(location, { method: 'PATCH', body })),
    );
    const busy = [
      await fixture.send(location, { method: 'PATCH', body: 'second' }),
      await fixture.send(`${location}?digest=${sha256('first')}`, { method: 'PUT' }),
      await fixture.send(location, { method: 'DELETE' }),
    ];
    expect(busy.map(({ status, code }) => [status, code])).toEqual(busy.map(() => [409, 'BLOB_UPLOAD_INVALID']));
    expect((await first.finish()).status).toBe(202);
    const digest = sha256('first');
    const puts = await Promise.all(
      Array.from({ length: 5 }, async () => await fixture.send(`${location}?digest=${digest}`, { method: 'PUT' })),
    );
    expect(puts.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(puts.every(({ status }) => [201, 404, 409].includes(status))).toBe(true);
    expect((await fixture.send(location, { method: 'PATCH', body: 'late' })).code).toBe('BLOB_UPLOAD_UNKNOWN');
    expect((await fixture.send(`/v2/home/race/blobs/${digest}`)).body.toString()).toBe('first');
  });

  test('an upload cannot be published under the digest of other content', async () => {
    const wanted = sha256('trusted content');
    for (let at = 0; at < 3; at += 1) {
      const location = await fixture.begin('home/forged');
      await fixture.send(location, { method: 'PATCH', body: 'something else' });
      expect((await fixture.send(`${location}?digest=${wanted}`, { method: 'PUT' })).code).toBe('DIGEST_INVALID');
    }
    expect((await fixture.send(`/v2/home/forged/blobs/${wanted}`)).status).toBe(404);
  });

  test('thousands of ranges are bounded, and readers may disconnect', async () => {
    const bytes = randomBytes(3 * 1024 * 1024);
    const { digest } = await fixture.blob('home/read', bytes);
    const path = `/v2/home/read/blobs/${digest}`;
    const many = `bytes=${Array.from({ length: 1_000 }, () => '0-0').join(',')}`;
    const flood = await fixture.send(path, { headers: { range: many } });
    expect([flood.status, flood.body.equals(bytes)]).toEqual([200, true]);
    const scattered = `bytes=${Array.from({ length: 1_025 }, (_, at) => `${at * 3}-${at * 3}`).join(',')}`;
    const rejected = await fixture.send(path, { headers: { range: scattered } });
    expect([rejected.status, rejected.code]).toEqual([400, 'UNSUPPORTED']);
    // A head of 20 KiB, as for a large layer.
    const beyond = Array.from({ length: 1_024 }, (_, at) => `${900_000_000 + at * 9}-${900_000_003 + at * 9}`).join(
      ',',
    );
    expect((await fixture.send(path, { headers: { range: `bytes=${beyond}` } })).status).toBe(416);
    // The parser rejects a head that is too large.
    const answer = await fixture.raw(`GET ${path} HTTP/1.1`, [`range: bytes=${'0-0,'.repeat(10_000)}`]);
    expect(statusAndCode(answer)).toEqual([431, 'UNSUPPORTED']);
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const connection = await fixture.connect();
        connection.write(head('GET', path, 'range: bytes=0-'));
        await expect.poll(() => connection.received.length, { timeout: waitMs }).toBeGreaterThan(0);
        await connection.cut();
      }),
    );
  });
}

/** A request that has sent the word "first", and is not finished. */
class SlowWriter {
  readonly #body = new Readable({ read: () => {} });
  readonly #answer: Promise<Answer>;
  #isAnswered = false;

  constructor(send: (body: Readable) => Promise<Answer>) {
    this.#body.push('first');
    this.#answer = send(this.#body).finally(() => (this.#isAnswered = true));
  }

  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  async finish(): Promise<Answer> {
    this.#body.push(null);
    return await this.#answer;
  }
}
