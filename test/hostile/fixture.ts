/**
 * Runs tests with hostile input against a registry in its own process, on all drivers of the run. After each test the registry
 * must still serve, have no additional open files or sockets, and store no bytes of unfinished uploads.
 */
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, vi } from 'vitest';
import type { Blobs } from '../../core/blobs/blobs.ts';
import { openGridFsBlobs } from '../../core/blobs/gridfs/gridfs.ts';
import { openLog } from '../../core/log/log.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import type { TestDrivers } from '../kit/servers/drivers.ts';
import { residentBytes } from '../kit/machine/resident-memory.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { sendTo, sha256 } from '../kit/registry/registry.ts';
import type { Answer, Sent } from '../kit/registry/registry.ts';
import { hashing } from '../kit/registry/hashing.ts';

/** Declares tests on all drivers, and checks the registry after each test. */
export function againstAllRegistries(declare: (fixture: Fixture) => void): void {
  for (const drivers of testDrivers()) {
    const name = drivers === 'embedded' ? 'SQLite and files' : 'MongoDB and GridFS';
    describe(`Against a registry on ${name}`, () => {
      const fixture = new Fixture(drivers);
      beforeAll(async () => await fixture.open());
      afterAll(async () => await fixture.close());
      afterEach(async () => await fixture.assertUnharmed());
      declare(fixture);
    });
  }
}

/** Long, because test machines are busy. */
export const waitMs = 60_000;

/** A blob that the registry must still serve after each test. */
const control = 'still here';

/** Up to four hashing threads are kept for a while, and the event loop of each has five open files. */
const threadFiles = 4 * 5;

/** Two pools of database connections, of up to 100 each, grow under load and do not shrink. */
const pooledConnections = 220;

export class Fixture {
  readonly drivers: TestDrivers;
  #platform: TestPlatform | undefined;
  /** A second driver on the registry's data, on the shared drivers. */
  #blobs: Blobs | undefined;
  #openFiles = 0;

  constructor(drivers: TestDrivers) {
    this.drivers = drivers;
  }

  async open(): Promise<void> {
    // Without limits, because operators can disable them.
    const settings = { BERTH_REGISTRY_OPEN_UPLOADS: '0', BERTH_REGISTRY_FAILED_LOGINS_PER_MINUTE: '0' };
    this.#platform = await startPlatform({ drivers: this.drivers, only: ['registry', 'api'], settings });
    if (this.drivers !== 'embedded') {
      const place = { url: this.drivers.mongodbUrl, database: this.platform.node };
      this.#blobs = await openGridFsBlobs({ hashing, ...place, log: openLog('silent', process.stderr) });
    }
    await this.blob('home/control', control);
    await this.send(`/v2/home/control/blobs/${sha256(control)}`);
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

  /** Sends a request with a token of the account `home` that has all rights there. */
  async send(path: string, sent: Sent = {}): Promise<Answer> {
    return await sendTo(this.port, path, { ...sent, headers: { authorization: this.authorization, ...sent.headers } });
  }

  /** A raw connection to the registry or to another port. */
  async connect(port = this.port): Promise<Connection> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Connection(socket);
  }

  /** Sends a raw request with that token, and returns all bytes until the registry closes the connection. */
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

  /** Pushes an image of one layer. @returns its digest. */
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

  /** The IDs of all uploads that are stored. */
  async uploads(): Promise<string[]> {
    if (!this.#blobs) return await readdir(join(this.platform.dataFolder, 'blobs/uploads'));
    const ids: string[] = [];
    for await (const id of this.#blobs.listUploads()) ids.push(id);
    return ids;
  }

  /** Throws if the registry does not serve, has files open, or has logged an error. */
  async assertUnharmed(): Promise<void> {
    const pulled = await this.send(`/v2/home/control/blobs/${sha256(control)}`);
    if (pulled.body.toString() !== control) throw new Error(`A pull returned ${pulled.status}`);
    await eventually('Bytes of uploads are left', async () => (await this.uploads()).length === 0);
    await this.assertFilesClosed();
    const failure = this.platform.log.split('\n').find((line) => line.includes('"level":"error"'));
    if (failure !== undefined) throw new Error(`The registry logged an error: ${failure}`);
  }

  /** Throws if the registry's process has more open files than at the start. */
  async assertFilesClosed(): Promise<void> {
    const allowed = this.#openFiles + threadFiles + (this.drivers === 'embedded' ? 0 : pooledConnections);
    await eventually('Files or sockets are left open', async () => (await this.#countOpenFiles()) <= allowed);
  }

  /** Open files, sockets and pipes of the registry's process; 0 on systems without /proc. */
  async #countOpenFiles(): Promise<number> {
    const files = await readdir(`/proc/${this.platform.registryPid}/fd`).catch(() => []);
    return files.length;
  }
}

async function eventually(message: string, holds: () => Promise<boolean>): Promise<void> {
  const check = async () => {
    if (!(await holds())) throw new Error(message);
  };
  await vi.waitFor(check, { timeout: waitMs });
}

/** A client that sends and receives raw bytes. */
export class Connection {
  readonly #socket: Socket;
  #received = '';
  readonly #closed: Promise<unknown>;

  constructor(socket: Socket) {
    this.#socket = socket;
    // Tests disconnect on purpose, and check only the received bytes.
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

  /** Writes the same bytes repeatedly, as fast as they are read, until the other side disconnects. */
  flood(bytes: Buffer): void {
    const writeMore = () => {
      while (!this.#socket.destroyed && this.#socket.write(bytes));
    };
    this.#socket.on('drain', writeMore);
    writeMore();
  }

  /** Everything received, once the registry has disconnected. */
  async rest(): Promise<string> {
    await this.#closed;
    return this.#received;
  }

  /** Resets the connection. */
  async cut(): Promise<void> {
    this.#socket.resetAndDestroy();
    await this.#closed;
  }
}

/** The status and OCI code of a raw response. */
export function statusAndCode(text: string): [number, string | undefined] {
  const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(text)?.[1] ?? 0);
  return [status, /"errors":\[\{"code":"([A-Z_]+)"/.exec(text)?.[1]];
}

/** The resident memory of a process; 0 on systems without /proc. */
export async function residentMiB(pid: number | undefined): Promise<number> {
  return (await residentBytes(pid)) / 1024 ** 2;
}
