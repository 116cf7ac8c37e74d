/** Connections to MongoDB, for documents and GridFS blobs. */
import { MongoClient, MongoServerError, ReadConcern } from 'mongodb';
import type { Db, DbOptions, Document, MongoClientOptions } from 'mongodb';

export interface MongoOptions {
  /** The URL of a standalone server, a replica set or a sharded cluster. It contains a password: never log it. */
  readonly url: string;
  /** Default: the database in the URL, else `berth`. */
  readonly database?: string;
}

const defaultDatabase = 'berth';

/** The driver returns `test` for a URL without a database. */
const urlDatabase = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^/?]+)/;

/**
 * How long an operation waits for an available server. An election takes longer: callers that can wait retry, and a readiness probe
 * must not wait.
 */
const selectionTimeoutMs = 3_000;

/** After this time, a write that a majority has not confirmed fails with an unknown result; it may still happen. */
const majorityTimeoutMs = 5_000;

/** An answer takes milliseconds, or as long as a majority may take. After this time the connection counts as dead. */
const answerTimeoutMs = 10_000;

/** In MongoDB's list of error codes. */
const commandNotFound = 59;

/**
 * Overrides the URL. Writes are acknowledged by a majority after they are in its journals, so they survive a failover; a standalone server
 * is its own majority. Reads go to the primary with `local`: it has every acknowledged write. `majority` could miss current writes,
 * so that version checks would fail repeatedly; `linearizable` costs a round trip within the replica set for each read. A deposed
 * primary may answer for some seconds; that is harmless, because a majority rejects the writes that follow from its answers.
 */
const guarantees = {
  writeConcern: { w: 'majority', journal: true },
  readConcern: new ReadConcern('local'),
  readPreference: 'primary',
} satisfies DbOptions;

/** Options of every client. The driver retries reads and writes; for servers that cannot, the URL has `retryWrites=false`. */
const connection = {
  appName: 'berth',
  serverSelectionTimeoutMS: selectionTimeoutMs,
  connectTimeoutMS: selectionTimeoutMs,
} satisfies MongoClientOptions;

/** Connects, and returns a client that reconnects by itself. The caller closes it. */
export async function connectMongo(options: MongoOptions): Promise<{ client: MongoClient; db: Db }> {
  const client = new MongoClient(options.url, {
    ...connection,
    waitQueueTimeoutMS: answerTimeoutMs,
    socketTimeoutMS: answerTimeoutMs,
  });
  try {
    await client.connect();
    const writeConcern = { ...guarantees.writeConcern, wtimeoutMS: majorityTimeoutMs };
    return { client, db: client.db(databaseName(options), { ...guarantees, writeConcern }) };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** Runs an action without time limits, such as creating an index, on a separate connection. */
export async function withPatientMongo<R>(options: MongoOptions, action: (db: Db) => Promise<R>): Promise<R> {
  const client = new MongoClient(options.url, { ...connection, maxPoolSize: 1 });
  try {
    return await action(client.db(databaseName(options), guarantees));
  } finally {
    await client.close();
  }
}

/** The `hello` answer of the primary, or of the router of a sharded cluster, which contains its time. */
export async function serverHello(db: Db): Promise<Document> {
  try {
    return await db.admin().command({ hello: 1 });
  } catch (error) {
    // The name of the command before MongoDB 4.4.2, and of some compatible servers.
    if (error instanceof MongoServerError && error.code === commandNotFound)
      return await db.admin().command({ isMaster: 1 });
    throw error;
  }
}

function databaseName({ url, database }: MongoOptions): string {
  return database ?? urlDatabase.exec(url)?.[1] ?? defaultDatabase;
}
