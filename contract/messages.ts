/** Messages between components on the bus. They are soft state, which expires when its owner is silent. */
import { z } from 'zod';
import { backendStatus } from './statuses.ts';

/** A backend's document has changed. The process that wrote the change publishes this after the write. */
export const backendChanged = {
  name: 'backend-changed',
  message: z.strictObject({ backend: z.string(), status: backendStatus }),
};

/** A route of a key is new, or leads to another backend than before. The API process that wrote the route publishes this. */
export const routeMoved = {
  name: 'route-moved',
  message: z.strictObject({ route: z.string() }),
};

/** A backend of a cluster waits in `scheduled`, and the node that was notified has no capacity: another node should claim it. */
export const backendWaits = {
  name: 'backend-waits',
  message: z.strictObject({ cluster: z.string() }),
};

export interface PullProgress {
  readonly layers: number;
  /** Layers that are downloaded and extracted, or that the node had already. */
  readonly layersDone: number;
  readonly downloadedBytes: number;
  /** Of the layers whose download has begun. */
  readonly totalBytes: number;
}

const count = z.int().min(0);

/**
 * The progress of the pull of a backend's image. Its worker publishes this at most every `pullProgressMs`, and once more when
 * the last layer is done.
 */
export const pullProgressed = {
  name: 'pull-progressed',
  message: z.strictObject({
    backend: z.string(),
    progress: z.strictObject({ layers: count, layersDone: count, downloadedBytes: count, totalBytes: count }),
  }),
};

/** Often enough for a progress bar that moves. */
export const pullProgressMs = 500;

/**
 * A proxy's heartbeat, for all nodes: the nodes to whose backends it has open connections. Published every `connectionsHeartbeatMs`,
 * after a report of all connections (`connectionsOf`) to each of these nodes. For all other nodes it means that none are open.
 */
export const proxyHeartbeat = {
  name: 'proxy-heartbeat',
  message: z.strictObject({ proxy: z.string(), nodes: z.array(z.string()) }),
};

/**
 * How many connections and requests a proxy has open to backends of one node. With `isWhole`, the report contains all of these backends;
 * otherwise only backends whose first connection has opened, or whose last connection has closed (0).
 */
export function connectionsOf(node: string) {
  return { name: `connections/${node}`, message: connectionsReport };
}

const connectionsReport = z.strictObject({
  proxy: z.string(),
  isWhole: z.boolean(),
  open: z.record(z.string(), count),
});

/** How often a proxy publishes its open connections: often enough that idle sweeps are exact to a second. */
export const connectionsHeartbeatMs = 1_000;

/** A proxy that has published nothing for this long (five heartbeats) is considered dead, and its connections closed. */
export const proxySilentAfterMs = 5_000;

/** A manifest was pushed. Published after the store has it, also when the manifest existed before. */
export const manifestPushed = {
  name: 'manifest-pushed',
  message: z.strictObject({
    /** `<account>/<service>`. */
    repository: z.string(),
    digest: z.string(),
    mediaType: z.string(),
    /** The tags that this push has set; none if the manifest was pushed by digest. */
    tags: z.array(z.string()),
    /** The account whose access token was used for the push. */
    by: z.string(),
  }),
};

/** A manifest was deleted, with every tag that pointed to it. */
export const manifestDeleted = {
  name: 'manifest-deleted',
  message: z.strictObject({ repository: z.string(), digest: z.string(), by: z.string() }),
};

/** A tag was deleted, but not its manifest. */
export const tagDeleted = {
  name: 'tag-deleted',
  message: z.strictObject({ repository: z.string(), tag: z.string(), by: z.string() }),
};

/** The permissions of tokens have changed. Published after the write, with the token's ID if the change concerns only one token. */
export const permissionsChanged = {
  name: 'permissions-changed',
  message: z.strictObject({ token: z.string().optional() }),
};

/** A user has confirmed the log-in of a command line. */
export const cliLoginConfirmed = {
  name: 'cli-login-confirmed',
  message: z.strictObject({ login: z.string() }),
};

/** An administrator has drained a node, or let it accept backends again. Published after the write. */
export const nodeDrainChanged = {
  name: 'node-drain-changed',
  message: z.strictObject({ node: z.string() }),
};
