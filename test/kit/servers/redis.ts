/** Real Redis servers for tests: the `redis-server` on the PATH. Each has its own process, free port and folder. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, tryCommand } from '../../../setup/command.ts';
import { makeCertificate } from '../machine/certificate.ts';
import { endedWithParent, endProcess } from '../machine/end-process.ts';
import { freePort } from '../machine/free-port.ts';
import { freeze } from '../machine/frozen-process.ts';

export interface RedisServerOptions {
  readonly password?: string;
  /** Accepts only TLS, with a new certificate for `localhost`, or with the one in a folder (`makeCertificate`). */
  readonly tls?: boolean | { readonly folder: string };
  /** Keeps its data over restarts, even if it is killed. */
  readonly appendOnly?: boolean;
  /** Listens on a Unix socket in its folder instead of a port. */
  readonly socket?: boolean;
  /** Runs as a sentinel. */
  readonly sentinel?: boolean;
  /** Additional lines of `redis.conf`. */
  readonly lines?: readonly string[];
}

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly pid: number;
  /** Starts it again on the same port, with the data that it kept. */
  start(): Promise<void>;
  /** Stops it with SIGTERM, or at once with `SIGKILL`. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Freezes it: it keeps its connections, but does not answer. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Deletes all its data. */
  flush(): Promise<void>;
  /** Runs a command with `redis-cli`. */
  ask(...command: string[]): Promise<string>;
}

/** A start takes 20 ms, but longer on a busy machine. */
const startTimeoutMs = 60_000;

/** A server of a Redis Cluster also listens on its port plus this number. */
const clusterPortDistance = 10_000;

/** Returns why no Redis can be started here, or undefined. */
export async function redisProblem(): Promise<string | undefined> {
  for (const program of ['redis-server', 'redis-cli']) {
    if ((await findProgram(program)) === undefined) return `there is no ${program} on the PATH (Debian: redis-server)`;
  }
  return undefined;
}

/** Waits until a bus or a queue has reached its Redis: one that is busy does not delay their opening for more than a second. */
export async function untilReached(client: { ping(): Promise<void> }): Promise<void> {
  for (const deadline = performance.now() + startTimeoutMs; ; await delay(10)) {
    try {
      return await client.ping();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}

/** Returns the Redis at `REDIS_URL`, or starts one. */
export async function openTestRedis(): Promise<{ readonly url: string } & AsyncDisposable> {
  const url = process.env['REDIS_URL'];
  return url ? { url, [Symbol.asyncDispose]: async () => {} } : await startRedis();
}

/** Starts a Redis. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-redis-'));
  const port = options.socket ? 0 : await freePort(clusterPortDistance);
  if (options.tls === true) await makeCertificate(folder);
  const server = new LocalRedis(folder, port, options);
  await writeFile(join(folder, 'redis.conf'), configOf(folder, port, options).join('\n'));
  await server.start();
  return server;
}

class LocalRedis implements RedisServer {
  readonly folder: string;
  readonly port: number;
  readonly url: string;
  readonly #options: RedisServerOptions;
  #child: ChildProcess | undefined;

  constructor(folder: string, port: number, options: RedisServerOptions) {
    this.folder = folder;
    this.port = port;
    this.#options = options;
    const secret = options.password === undefined ? '' : `:${encodeURIComponent(options.password)}@`;
    if (options.socket) this.url = `redis+unix://${secret}${folder}/redis.sock`;
    else if (options.tls) this.url = `rediss://${secret}localhost:${port}?ca=${certificates(folder, options)}/ca.pem`;
    else this.url = `redis://${secret}127.0.0.1:${port}`;
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  async start(): Promise<void> {
    const args = [join(this.folder, 'redis.conf'), ...(this.#options.sentinel ? ['--sentinel'] : [])];
    const [redis = 'redis-server', setpriv] = await Promise.all(['redis-server', 'setpriv'].map(findProgram));
    const [program, ...more] = endedWithParent(redis, setpriv);
    const child = spawn(program, [...more, ...args], { cwd: this.folder, stdio: 'ignore' });
    this.#child = child;
    const deadline = performance.now() + startTimeoutMs;
    while (performance.now() < deadline && child.exitCode === null) {
      if ((await this.#cli('PING')).stdout.trim() === 'PONG') return;
      await delay(10);
    }
    const lines = (await readFile(join(this.folder, 'log'), 'utf8').catch(() => '')).trim().split('\n').slice(-8);
    throw new Error(`The Redis for tests did not start:\n${lines.join('\n')}`);
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child) return;
    const ended = endProcess(child, signal);
    // A frozen process receives the signal when it continues.
    child.kill('SIGCONT');
    await ended;
  }

  async freeze(): Promise<void> {
    if (this.#child) await freeze(this.#child);
  }

  thaw(): void {
    this.#child?.kill('SIGCONT');
  }

  async flush(): Promise<void> {
    await this.ask('FLUSHALL');
  }

  async ask(...command: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.#cli(...command);
    if (code !== 0) throw new Error(`redis-cli ${command.join(' ')}: ${stderr}`);
    return stdout.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }

  async #cli(...command: string[]) {
    const { socket, tls, password } = this.#options;
    const where = socket ? ['-s', join(this.folder, 'redis.sock')] : ['-h', 'localhost', '-p', `${this.port}`];
    if (tls) where.push('--tls', '--cacert', join(certificates(this.folder, this.#options), 'ca.pem'));
    const env = password === undefined ? {} : { REDISCLI_AUTH: password };
    return await tryCommand('redis-cli', [...where, ...command], { env });
  }
}

function configOf(folder: string, port: number, options: RedisServerOptions): string[] {
  const { tls, password, appendOnly, socket, sentinel, lines = [] } = options;
  const config = [`dir ${folder}`, `logfile ${folder}/log`, 'bind 127.0.0.1', `port ${tls ? 0 : port}`];
  if (!sentinel) config.push('save ""', `appendonly ${appendOnly ? 'yes' : 'no'}`, 'appendfsync always');
  if (socket) config.push(`unixsocket ${folder}/redis.sock`);
  if (password !== undefined) config.push(`requirepass ${password}`, `masterauth ${password}`);
  if (tls) {
    const from = certificates(folder, options);
    config.push(`tls-port ${port}`, 'tls-auth-clients no', `tls-ca-cert-file ${from}/ca.pem`);
    config.push(`tls-cert-file ${from}/server.pem`, `tls-key-file ${from}/server.key`, 'tls-replication yes');
  }
  return [...config, ...lines, ''];
}

/** The folder with a server's certificate. */
function certificates(folder: string, { tls }: RedisServerOptions): string {
  return typeof tls === 'object' ? tls.folder : folder;
}
