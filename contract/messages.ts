/** Messages between components on the bus. They are soft facts, which expire when their owner is silent. */
import { z } from 'zod';
import { backendStatus } from './statuses.ts';

/** A backend's document changed; told by whoever changed it, after the store has it. */
export const backendChanged = {
  name: 'backend-changed',
  message: z.strictObject({ backend: z.string(), status: backendStatus }),
};

/** A backend of a cluster waits in `scheduled`, and the node that was notified has no capacity for it: a node that has claims it. */
export const backendWaits = {
  name: 'backend-waits',
  message: z.strictObject({ cluster: z.string() }),
};

/**
 * A proxy's heartbeat: how many connections and requests it has open to each backend, all of them, none left out. Told
 * every `connectionsHeartbeatMs`, and at once when a backend's first connection opens or its last one closes.
 */
export const connectionsOpen = {
  name: 'connections-open',
  message: z.strictObject({ proxy: z.string(), open: z.record(z.string(), z.int().positive()) }),
};

/** How often a proxy tells its open connections: often enough that a sweep is exact to a second. */
export const connectionsHeartbeatMs = 1_000;

/** A proxy that has not been heard for this long (five heartbeats) is gone, and its connections with it. */
export const proxySilentAfterMs = 5_000;

/** A manifest was pushed, told after the store has it. Pushing what is there already is told again. */
export const manifestPushed = {
  name: 'manifest-pushed',
  message: z.strictObject({
    /** `<account>/<service>`. */
    repository: z.string(),
    digest: z.string(),
    mediaType: z.string(),
    /** The tags that point to it by this push; none if it was pushed by its digest alone. */
    tags: z.array(z.string()),
    /** The account whose access token it was pushed with. */
    by: z.string(),
  }),
};

/** A manifest was deleted, and every tag that pointed to it. */
export const manifestDeleted = {
  name: 'manifest-deleted',
  message: z.strictObject({ repository: z.string(), digest: z.string(), by: z.string() }),
};

/** A tag was deleted; its manifest is still there. */
export const tagDeleted = {
  name: 'tag-deleted',
  message: z.strictObject({ repository: z.string(), tag: z.string(), by: z.string() }),
};
