/** The audit: a record of each request that changes something. Most are written before the change and completed after it. */
import { randomBytes } from 'node:crypto';
import type { Collection } from '../core/store/store.ts';

export interface AuditRecord {
  readonly id: string;
  /** The account that it concerns. Empty: the platform. */
  readonly account: string;
  readonly at: Date;
  /** The operation: by its name in the API's document, or a push or a deletion at the registry. */
  readonly action: string;
  /** The target and the settings of the operation: parameters of the path, and fields of the body that hold no secrets. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly user?: string;
  /** The public ID of the token that the client used. */
  readonly token?: string;
  readonly address: string;
  /** The ID of the request, which is in the log as well. */
  readonly request: string;
  /** The HTTP status of the answer. Absent: the process died before it was known. */
  readonly status?: number;
}

export const auditRecords: Collection<AuditRecord, 'byAccount' | 'byEnd'> = {
  name: 'audit',
  indexes: { byAccount: ['account', 'at'], byEnd: ['at'] },
};

/** The recorded fields of bodies. Other fields, such as passwords, codes and variables, are not recorded. */
const recordedFields = new Set([
  'name',
  'scopes',
  'services',
  'expires_in_seconds',
  'role',
  'user_email',
  'owner_email',
  'is_admin',
  'disabled',
  'image_tag',
  'cluster',
  'public',
  'hard',
  'before',
  'dry_run',
  'connects_per_second',
  'running_backends',
  'repository',
  'branch',
  'environment',
]);

/** Selects the recorded parameters and fields of a body. */
export function auditDetails(parameters: object, body: unknown): Record<string, unknown> {
  const fields = typeof body === 'object' && body !== null ? Object.entries(body) : [];
  const recorded = fields.filter(([name, value]) => recordedFields.has(name) && value !== undefined);
  // A spawn token is a path parameter.
  const named = Object.entries(parameters).filter(([name]) => name !== 'token');
  return Object.fromEntries([...recorded, ...named]);
}

export function newAuditRecord(record: Omit<AuditRecord, 'id' | 'status'>): AuditRecord {
  return { ...record, id: randomBytes(12).toString('hex') };
}

/** Completes a record, with details that were not known before. */
export function withStatus(record: AuditRecord, status: number, details: object = {}): AuditRecord {
  return { ...record, details: { ...record.details, ...details }, status };
}
