/** The lifecycle of a backend in the service API (sections 2.6, 2.7 and 3.1 of the API document). */
import { z } from 'zod';

/** Every status, in the order in which a backend goes through them. It may skip statuses, but it never goes back. */
export const backendStatuses = [
  'scheduled',
  'loading',
  'starting',
  'waiting',
  'ready',
  'terminating',
  'hard-terminating',
  'terminated',
] as const;

/** `soft`: SIGTERM was sent. `hard`: the container was stopped by force. */
export const terminationKinds = ['soft', 'hard'] as const;

/**
 * Why a backend was stopped: `swept` (idle or lifetime limit), `external` (by the API or the platform),
 * `startuptimeout` (never became ready), `keyexpired` (the node could not renew its key),
 * `lost` (its node has stopped sending heartbeats).
 */
export const terminationReasons = ['swept', 'external', 'startuptimeout', 'keyexpired', 'lost'] as const;

export const backendStatus = z
  .enum(backendStatuses)
  .meta({ id: 'BackendStatusName', description: 'Status of a backend' });
export const terminationKind = z
  .enum(terminationKinds)
  .meta({ id: 'TerminationKind', description: 'How a backend was stopped' });
export const terminationReason = z
  .enum(terminationReasons)
  .meta({ id: 'TerminationReason', description: 'Why a backend was stopped' });

export type BackendStatus = z.infer<typeof backendStatus>;
export type TerminationKind = z.infer<typeof terminationKind>;
export type TerminationReason = z.infer<typeof terminationReason>;
