/**
 * Where hostile input is sent to a registry in a process of its own, on all drivers of the run. Whatever it was sent, it must
 * go on serving, let go of every file and socket, and keep no bytes of uploads that came to nothing.
 */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, vi } from 'vitest';
import type { Blobs } from '../../core/blobs/blobs.ts';
import { openGridFsBlobs } from '../../core/blobs/gridfs.ts';
import { openLog } from '../../core/log/log.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import type { TestDrivers } from '../kit/servers/drivers.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { sendTo, sha256 } from '../kit/registry/registry.ts';
import type { Answer, Sent } from '../kit/registry/registry.ts';
import { hashing } from '../kit/registry/hashing.ts';

/** Tells what is tried on all drivers, and after each try looks whether the registry took harm. */
export function onAllDrivers(tell: (fixture: Fixture) => void): void {
  for (const drivers of testDrivers()) {
    const name = drivers === 'embedded' ? 'SQLite and files' : 'MongoDB and GridFS';
    describe(`Against a registry on ${name}`, () => {
      const fixture = new Fixture(drivers);
      beforeAll(async () => await fixture.open());
      afterAll(async () => await fixture.close());
      afterEach(async () => await fixture.assertUnharmed());
      tell(fixture);
    });
  }
}

/** How long is waited for what must come: machines on which tests run are busy. */
export const waitMs = 20_000;

/** What every registry holds from the start, and must still serve at the end. */
const witness = 'still here';

/** Threads that hash are kept for a while, at most four, and each has five files of its own event loop. */
const threadFiles = 4 * 5;

/** Two pools of connections to a database, of up to 100 each, grow under load and are kept. */
const pooledConnections = 220;

export class Fixture {
  readonly drivers: TestDrivers;
  #platform: TestPlatform | undefined;
  /** Beside the registry's own, on the shared drivers. */
  #blobs: Blobs | undefined;
  #openFiles = 0;

  constructor(drivers: TestDrivers) {
    this.drivers = drivers;
  }

  async open(): Promise<void> {
    // What limits would refuse is tried here all the same: they can be lifted, and the registry must bear it then.
    const settings = { BERTH_REGISTRY_OPEN_UPLOADS: '0', BERTH_REGISTRY_FAILED_LOGINS_PER_MINUTE: '0' };
    this.#platform = await startPlatform({ drivers: this.drivers, only: ['registry', 'api'], settings });
    if (this.drivers !== 'embedded') {
      const place = { url: this.drivers.mongodbUrl, database: this.platform.node };
      this.#blobs = await openGridFsBlobs({ hashing, ...place, log: openLog('silent', process.stderr) });
    }
    await this.blob('home/witness', witness);
    await this.send(`/v2/home/witness/blobs/${sha256(witness)}`);
    this.#openFiles = await this.#countOpenFiles();
  }

  async close(): Promise<void> {
    await this.#blobs?.[Symbol.asyncDispose]();
    await this.#platform?.[Symbol.asyncDispose]();
  }

  get platform(): TestPlatform {
    if (!this.#platform) throw new Error('The fixture is not open');
    return this.#platform;
  }

  get port(): number {
    return Number(this.platform.registry.split(':').at(-1));
  }

  get authorization(): string {
    return `Basic ${Buffer.from(`home:${this.platform.token}`).toString('base64')}`;
  }

  /** Sends with the login of the account `home`, which may do everything there. */
  async send(path: string, sent: Sent = {}): Promise<Answer> {
    return await sendTo(this.port, path, { ...sent, headers: { authorization: this.authorization, ...sent.headers } });
  }

  /** A connection to the registry or to another port, on which anything can be written. */
  async connect(port = this.port): Promise<Connection> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Connection(socket);
  }

  /** Writes a request head as it stands, logged in, and returns all that comes until the registry hangs up. */
  async raw(requestLine: string, headers: readonly string[] = [], body: string | Buffer = ''): Promise<string> {
    const connection = await this.connect();
    const lines = [
      requestLine,
      'host: registry',
      `authorization: ${this.authorization}`,
      'connection: close',
      ...headers,
    ];
    connection.write(`${lines.join('\r\n')}\r\n\r\n`);
    connection.write(body);
    return await connection.rest();
  }

  async begin(repository: string): Promise<string> {
    const answer = await this.send(`/v2/${repository}/blobs/uploads/`, { method: 'POST' });
    return String(answer.headers.location);
  }

  async blob(repository: string, bytes: string | Uint8Array) {
    const digest = sha256(bytes);
    const path = `/v2/${repository}/blobs/uploads/?digest=${digest}`;
    const { status } = await this.send(path, { method: 'POST', body: bytes });
    if (status !== 201) throw new Error(`Pushing a blob answered ${status}`);
    return { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: Buffer.byteLength(bytes) };
  }

  /** An image of one layer. @returns its digest. */
  async image(repository: string, layer: Uint8Array): Promise<string> {
    const layers = [{ ...(await this.blob(repository, layer)), mediaType: 'application/vnd.oci.image.layer.v1.tar' }];
    const config = await this.blob(repository, '{"os":"linux","architecture":"amd64"}');
    const mediaType = 'application/vnd.oci.image.manifest.v1+json';
    const body = JSON.stringify({ schemaVersion: 2, mediaType, config, layers });
    const headers = { 'content-type': mediaType };
    const { status } = await this.send(`/v2/${repository}/manifests/${sha256(body)}`, { method: 'PUT', headers, body });
    if (status !== 201) throw new Error(`Pushing an image answered ${status}`);
    return sha256(body);
  }

  /** IDs of all uploads whose bytes are kept. */
  async uploads(): Promise<string[]> {
    if (!this.#blobs) return await readdir(join(this.platform.dataFolder, 'blobs/uploads'));
    const ids: string[] = [];
    for await (const id of this.#blobs.listUploads()) ids.push(id);
    return ids;
  }

  /** Throws what is wrong, once it has had the time to become right. */
  async assertUnharmed(): Promise<void> {
    const pulled = await this.send(`/v2/home/witness/blobs/${sha256(witness)}`);
    if (pulled.body.toString() !== witness) throw new Error(`A pull is answered ${pulled.status}`);
    await eventually('Bytes of uploads are left', async () => (await this.uploads()).length === 0);
    await this.assertFilesClosed();
    const failure = this.platform.log.split('\n').find((line) => line.includes('"level":"error"'));
    if (failure !== undefined) throw new Error(`The registry logged an error: ${failure}`);
  }

  /** Throws if the registry's process has more open than at the start. */
  async assertFilesClosed(): Promise<void> {
    const allowed = this.#openFiles + threadFiles + (this.drivers === 'embedded' ? 0 : pooledConnections);
    await eventually('Files or sockets are left open', async () => (await this.#countOpenFiles()) <= allowed);
  }

  /** Where the system tells: files, sockets and pipes that the registry's process has open. */
  async #countOpenFiles(): Promise<number> {
    const files = await readdir(`/proc/${this.platform.registryPid}/fd`).catch(() => []);
    return files.length;
  }
}

async function eventually(otherwise: string, holds: () => Promise<boolean>): Promise<void> {
  const check = async () => {
    if (!(await holds())) throw new Error(otherwise);
  };
  await vi.waitFor(check, { timeout: waitMs });
}

/** A client that speaks bytes. */
export class Connection {
  readonly #socket: Socket;
  #received = '';
  readonly #closed: Promise<unknown>;

  constructor(socket: Socket) {
    this.#socket = socket;
    // Hanging up in the middle is what is tried here; the answer, or its lack, is what is looked at.
    socket.setEncoding('latin1').on('error', () => {});
    socket.on('data', (chunk: string) => (this.#received += chunk));
    this.#closed = new Promise((resolve) => socket.once('close', resolve));
  }

  get received(): string {
    return this.#received;
  }

  get isAnswered(): boolean {
    return this.#received !== '';
  }

  write(bytes: string | Buffer): void {
    this.#socket.write(bytes);
  }

  /** Writes the same bytes again and again, as fast as they are read, until the other side hangs up. */
  flood(bytes: Buffer): void {
    const writeOn = () => {
      while (!this.#socket.destroyed && this.#socket.write(bytes));
    };
    this.#socket.on('drain', writeOn);
    writeOn();
  }

  /** Everything that came, once the registry has hung up. */
  async rest(): Promise<string> {
    await this.#closed;
    return this.#received;
  }

  /** Hangs up without a farewell. */
  async cut(): Promise<void> {
    this.#socket.resetAndDestroy();
    await this.#closed;
  }
}

/** Status and OCI code of an answer that came as bytes. */
export function refusalIn(text: string): [number, string | undefined] {
  const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(text)?.[1] ?? 0);
  return [status, /"errors":\[\{"code":"([A-Z_]+)"/.exec(text)?.[1]];
}
