/** What rooms tell each other on the bus: soft facts, forgotten when their owner is silent. */
import { z } from 'zod';
import { backendStatus } from './statuses.ts';

/** A backend's document changed; told by whoever changed it, after the store has it. */
export const backendChanged = {
  name: 'backend-changed',
  message: z.strictObject({ backend: z.string(), status: backendStatus }),
};

/** Someone was just given a connection to a backend and needs a moment to use it: its idle clock starts anew. */
export const backendTouched = {
  name: 'backend-touched',
  message: z.strictObject({ backend: z.string() }),
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
