/** Backends in the service API v2 (sections 2.6 and 2.7 of the API document). */
import { z } from 'zod';
import { backendStatus, terminationKind, terminationReason } from './statuses.ts';
import { timestamp } from './timestamp.ts';

/** The same sentence as on the readiness page. */
const problem = z.string().meta({
  description: 'What went wrong, as text for users: why the backend ended, or why its container does not answer yet',
});

export const statusObject = z
  .strictObject({
    status: backendStatus,
    time: timestamp,
    termination_kind: terminationKind.nullable().optional(),
    termination_reason: terminationReason.nullable().optional(),
    exit_error: z.boolean().meta({ description: 'Whether the container exited with a non-zero code' }).optional(),
    problem: problem.optional(),
  })
  .meta({ id: 'BackendStatus' });

export const statusEntry = z
  .strictObject({
    status: backendStatus,
    time: timestamp,
    last_status: backendStatus.optional(),
    termination_kind: terminationKind.nullable().optional(),
    termination_reason: terminationReason.nullable().optional(),
    terminatation_reason: terminationReason
      .nullable()
      .meta({ description: 'The same as `termination_reason`, spelled as in the API document' })
      .optional(),
    exit_code: z.int().nullable().optional(),
    problem: problem.optional(),
  })
  .meta({ id: 'StatusEntry' });

const runningFields = {
  account_name: z.string(),
  cluster_name: z.string(),
  created_at: timestamp,
  environment_name: z.string(),
  id: z.string(),
  image_digest: z.string(),
  key: z.string().nullable(),
  service_name: z.string(),
};

const maxMemBytes = z
  .int()
  .meta({ description: 'The highest memory usage measured so far, 0 before the first measurement' });

export const backendMetadata = z
  .strictObject({ ...runningFields, max_mem_bytes: maxMemBytes, statuses: z.array(statusEntry) })
  .meta({ id: 'Backend' });

export const backendListItem = z
  .strictObject({
    ...runningFields,
    max_mem_bytes: maxMemBytes,
    ready_timestamp: timestamp.nullable(),
    status: statusObject,
  })
  .meta({ id: 'BackendListItem' });

export const runningBackend = z.strictObject({ ...runningFields, status: statusObject }).meta({ id: 'RunningBackend' });

export const terminateRequest = z
  .strictObject({
    hard: z.boolean().meta({ description: 'Stop the container by force instead of sending SIGTERM' }).optional(),
  })
  .meta({ id: 'TerminateRequest' });

export const terminateBackendsRequest = z
  .strictObject({
    before: z.iso
      .datetime({ offset: true })
      .transform((text) => new Date(text))
      .meta({ description: 'Only backends that were spawned before this time are stopped. Default: now' })
      .optional(),
    hard: z.boolean().meta({ description: 'Stop the containers by force instead of sending SIGTERM' }).optional(),
    dry_run: z.boolean().meta({ description: 'Only count the backends' }).optional(),
  })
  .meta({ id: 'TerminateBackendsRequest' });

const nanoseconds = z.int().min(0);
const bytes = z.int().min(0);

export const metricsRecord = z
  .strictObject({
    backend_id: z.string(),
    cpu_used: nanoseconds.meta({ description: 'CPU time of the container since the previous record, in nanoseconds' }),
    sys_cpu: nanoseconds.meta({
      description: 'CPU time of the host since the previous record, in nanoseconds: the sum of all cores, busy or idle',
    }),
    mem_used: bytes.meta({ description: 'Memory in use, without reclaimable page cache, in bytes' }),
    mem_limit: bytes.meta({ description: 'The memory limit in bytes, or the memory of the host if there is no limit' }),
    mem_available: bytes.meta({ description: '`mem_limit` minus `mem_used`' }),
  })
  .meta({ id: 'Metrics' });

const total = z.int().min(0);

export const trafficObject = z
  .strictObject({
    backend_id: z.string(),
    requests: total.meta({ description: 'Requests that have ended; an upgraded connection counts as one' }),
    bytes_in: total.meta({ description: 'Bytes received from clients, including heads' }),
    bytes_out: total.meta({ description: 'Bytes sent to clients, including heads' }),
    open_connections: total.meta({ description: 'Requests and upgraded connections that are open' }),
    counted_at: timestamp
      .nullable()
      .meta({ description: 'When a proxy last stored a part of these numbers, null before the first time' }),
  })
  .meta({ id: 'Traffic' });

export type TrafficObject = z.infer<typeof trafficObject>;
export type StatusObject = z.infer<typeof statusObject>;
export type StatusEntryObject = z.infer<typeof statusEntry>;
export type BackendMetadata = z.infer<typeof backendMetadata>;
export type BackendListItem = z.infer<typeof backendListItem>;
export type RunningBackend = z.infer<typeof runningBackend>;
export type MetricsRecord = z.infer<typeof metricsRecord>;
