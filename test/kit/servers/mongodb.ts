/**
 * A MongoDB for tests, the first of these that is available: the server at MONGODB_URL; a `mongod` on the PATH or a downloaded one,
 * as a replica set of one; a server with MongoDB's protocol, built with JDK and Maven. If none is available, the reason.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { MongoClient } from 'mongodb';
import { findProgram } from '../../../setup/command.ts';
import { endedWithParent, endProcess } from '../machine/end-process.ts';
import { freePort } from '../machine/free-port.ts';
import { freeze } from '../machine/frozen-process.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { mongodProgram } from './mongod.ts';
import { protocolServer } from './mongodb-install.ts';
import type { ServerUse } from './mongodb-install.ts';

/** The kind of server, which determines what tests can cover. */
export type MongoKind = 'the given MongoDB' | 'a mongod' | 'a protocol server';

export interface TestMongo extends AsyncDisposable {
  readonly kind: MongoKind;
  readonly url: string;
  /** A unique database name. */
  newDatabase(): TestDatabase;
}

/** A database that is dropped when it is disposed. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
  readonly database: string;
}

/** A test's own server, which keeps its data and its address over restarts. */
export interface StoppableMongo extends TestMongo {
  /** Kills a mongod. Stops the protocol server with SIGTERM, because a kill would lose the acknowledged writes of the last second. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Freezes it, as if its machine hung, until the returned function is called. */
  freeze(): Promise<() => void>;
}

export interface Missing {
  readonly missing: string;
}

/** A cold start takes 2 to 5 seconds. */
const startTimeoutMs = 60_000;

/** Returns a server for the tests of one file, or for a measurement. */
export async function testMongo(use?: ServerUse): Promise<TestMongo | Missing> {
  const url = process.env['MONGODB_URL'];
  return url ? onServer('the given MongoDB', url, async () => {}) : await startMongo(use);
}

/** Starts a server that a test can stop and start again. */
export async function stoppableMongo(): Promise<StoppableMongo | Missing> {
  return await startMongo({ isStopped: true });
}

async function startMongo(use?: ServerUse): Promise<StoppableMongo | Missing> {
  const server = await findServer(use);
  if ('missing' in server) return server;
  await using opening = new AsyncDisposableStack();
  const { path: folder } = opening.use(await temporaryFolder());
  const port = await freePort();
  let child = await launch(server, folder, port);
  opening.defer(async () => void (await endProcess(child, 'SIGTERM', startTimeoutMs)));
  const url = await server.url(port);
  await untilWritable(url);
  const owned = opening.move();
  return {
    ...onServer(server.kind, url, async () => await owned.disposeAsync()),
    stop: async () =>
      void (await endProcess(child, server.kind === 'a mongod' ? 'SIGKILL' : 'SIGTERM', startTimeoutMs)),
    start: async () => {
      child = await launch(server, folder, port);
      await untilWritable(url);
    },
    freeze: async () => await freeze(child),
  };
}

interface Server {
  readonly kind: MongoKind;
  command(folder: string, port: number): readonly [string, ...string[]];
  /** Matches the line that the server prints when it is ready. */
  readonly ready: RegExp;
  /** Prepares a new server, and returns its URL. */
  url(port: number): Promise<string>;
}

async function findServer(use?: ServerUse): Promise<Server | Missing> {
  const mongod = await mongodProgram();
  if (mongod !== undefined) return realServer(mongod, await findProgram('setpriv'));
  const java = await protocolServer(use);
  if ('missing' in java) return { missing: `there is neither MONGODB_URL nor a mongod, and ${java.missing}` };
  return {
    kind: 'a protocol server',
    command: java.command,
    ready: /^mongodb:/,
    url: async (port) => `mongodb://127.0.0.1:${port}`,
  };
}

function realServer(mongod: string, setpriv: string | undefined): Server {
  const flags = ['--replSet', 'test', '--bind_ip', '127.0.0.1'];
  const program = endedWithParent(mongod, setpriv);
  return {
    kind: 'a mongod',
    command: (folder, port) => [...program, ...flags, '--dbpath', folder, '--port', `${port}`],
    ready: /Waiting for connections/i,
    url: async (port) => {
      const member = `127.0.0.1:${port}`;
      await using client = new MongoClient(`mongodb://${member}/?directConnection=true`);
      await client.db('admin').command({ replSetInitiate: { _id: 'test', members: [{ _id: 0, host: member }] } });
      return `mongodb://${member}/?replicaSet=test`;
    },
  };
}

async function launch(server: Server, folder: string, port: number): Promise<ChildProcess> {
  const [program, ...args] = server.command(folder, port);
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const output: string[] = [];
  const late = setTimeout(() => child.kill('SIGKILL'), startTimeoutMs);
  try {
    child.stderr.setEncoding('utf8').on('data', (text: string) => output.push(text));
    for await (const line of createInterface({ input: child.stdout })) {
      if (server.ready.test(line)) {
        drain(child.stdout);
        return child;
      }
      output.push(`${line}\n`);
    }
  } finally {
    clearTimeout(late);
  }
  throw new Error(`The MongoDB for tests did not start:\n${output.join('').trim().split('\n').slice(-8).join('\n')}`);
}

/** Discards further output, so that the server does not block on a full pipe. */
function drain(stream: Readable): void {
  stream.resume();
}

function onServer(kind: MongoKind, url: string, dispose: () => Promise<void>): TestMongo {
  return {
    kind,
    url,
    newDatabase: () => newDatabaseAt(url),
    [Symbol.asyncDispose]: dispose,
  };
}

/** Returns a unique database name on a server. */
export function newDatabaseAt(url: string): TestDatabase {
  const database = `berth-test-${randomUUID()}`;
  return { url, database, [Symbol.asyncDispose]: async () => await dropDatabase(url, database) };
}

/** Waits for the primary, which a replica set elects after its servers are ready. */
async function untilWritable(url: string): Promise<void> {
  await using client = new MongoClient(url, { serverSelectionTimeoutMS: startTimeoutMs });
  await client.db('admin').command({ ping: 1 });
}

async function dropDatabase(url: string, database: string): Promise<void> {
  await using client = new MongoClient(url, { serverSelectionTimeoutMS: startTimeoutMs });
  await client.db(database).dropDatabase();
}
