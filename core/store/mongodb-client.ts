/** The one way in which this house talks to MongoDB: documents and GridFS blobs alike. */
import { MongoClient, MongoServerError, ReadConcern } from 'mongodb';
import type { Db, DbOptions, Document, MongoClientOptions } from 'mongodb';

export interface MongoOptions {
  /** Of a standalone server, a replica set or a sharded cluster. It holds a password: never log it. */
  readonly url: string;
  /** Default: the one that the URL names, else `berth`. */
  readonly database?: string;
}

const defaultDatabase = 'berth';

/** Where the URL names none, the driver says `test`. */
const urlDatabase = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^/?]+)/;

/**
 * When no server can take an operation, callers hear of it after this long. An election takes longer; whoever can wait tries
 * again, and a readiness probe must not.
 */
const selectionTimeoutMs = 3_000;

/** A write that a majority has not confirmed by then is reported as unknown; it may still happen. */
const majorityTimeoutMs = 5_000;

/** An answer takes milliseconds, or as long as a majority may take. After this the connection is taken for dead. */
const answerTimeoutMs = 10_000;

/** In MongoDB's list of error codes. */
const commandNotFound = 59;

/**
 * What holds whatever the URL says. Writes are acknowledged by a majority and from its journals, so they outlive a failover;
 * a standalone server is its own majority. Reads go to the primary with `local`: it has every write that was ever
 * acknowledged, our own included. `majority` could miss what is being written now, so that version checks would fail over
 * and over; `linearizable` costs a round of the replica set for each read. What a deposed primary still answers for some
 * seconds cannot do harm: what is decided by it must be written, and a majority refuses that.
 */
const guarantees = {
  writeConcern: { w: 'majority', journal: true },
  readConcern: new ReadConcern('local'),
  readPreference: 'primary',
} satisfies DbOptions;

/** Those of every client. The driver retries reads and writes where servers can; for others the URL says `retryWrites=false`. */
const connection = {
  appName: 'berth',
  serverSelectionTimeoutMS: selectionTimeoutMs,
  connectTimeoutMS: selectionTimeoutMs,
} satisfies MongoClientOptions;

/** Connects, and hands back a client that reconnects by itself from then on. The caller closes it. */
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

/** Runs something that takes as long as it takes, such as making an index, over a connection of its own. */
export async function withPatientMongo<R>(options: MongoOptions, action: (db: Db) => Promise<R>): Promise<R> {
  const client = new MongoClient(options.url, { ...connection, maxPoolSize: 1 });
  try {
    return await action(client.db(databaseName(options), guarantees));
  } finally {
    await client.close();
  }
}

/** What the primary, or the router of a sharded cluster, says of itself: its time among other things. */
export async function serverHello(db: Db): Promise<Document> {
  try {
    return await db.admin().command({ hello: 1 });
  } catch (error) {
    // Its name before MongoDB 4.4.2, and that of some servers that speak the protocol.
    if (error instanceof MongoServerError && error.code === commandNotFound)
      return await db.admin().command({ isMaster: 1 });
    throw error;
  }
}

function databaseName({ url, database }: MongoOptions): string {
  return database ?? urlDatabase.exec(url)?.[1] ?? defaultDatabase;
}
