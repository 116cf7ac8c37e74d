/** Records pushes and deletions in the audit. Image archives come through the API, which records their requests. */
import { clientAddress } from '../core/http/client-address.ts';
import { requestId } from '../core/http/request-id.ts';
import { publicTokenId } from '../model/access-token.ts';
import { auditRecords, newAuditRecord, withStatus } from '../model/audit.ts';
import type { AuditRecord } from '../model/audit.ts';
import type { AuthorizedRequest, RegistryContext } from './context.ts';
import { registryErrors } from './error-catalogue.ts';
import { asRegistryError } from './errors.ts';

interface Change {
  readonly action: 'pushManifest' | 'deleteManifest' | 'deleteTag' | 'deleteBlob';
  readonly repository: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The status of the answer to a change that succeeds. */
  readonly status: number;
}

/**
 * Runs a change that records itself: `apply` calls `record` when nothing is left to check. The record has the status of success, so
 * that it costs one write; only if the change fails after it, the status is written again. After a crash in between, the record stands
 * for a change that may be incomplete, and that the client repeats.
 */
export async function audited(
  context: RegistryContext,
  incoming: AuthorizedRequest,
  change: Change,
  apply: (record: () => Promise<void>) => Promise<void>,
): Promise<void> {
  let recorded: AuditRecord | undefined;
  const record = async () => {
    const at = await context.store.now();
    recorded = withStatus(newAuditRecord({ ...recordOf(context, incoming, change), at }), change.status);
    await context.store.insert(auditRecords, recorded);
  };
  try {
    await apply(record);
  } catch (error) {
    if (recorded) await correct(context, recorded, registryErrors[asRegistryError(error).entry].status);
    throw error;
  }
}

function recordOf(
  { behindLoadBalancer }: RegistryContext,
  { request, response, caller }: AuthorizedRequest,
  { action, repository, details }: Change,
): Omit<AuditRecord, 'id' | 'at' | 'status'> {
  const [account = '', service = ''] = repository.split('/', 2);
  const { permissions } = caller;
  return {
    account,
    action,
    details: { ...details, account, service },
    ...(permissions?.user !== undefined && { user: permissions.user }),
    ...(permissions && { token: publicTokenId({ id: permissions.token }) }),
    address: clientAddress(request, behindLoadBalancer),
    request: requestId(request, response),
  };
}

async function correct({ store, log }: RegistryContext, { id, request }: AuditRecord, status: number): Promise<void> {
  try {
    await store.update(auditRecords, id, (current) => withStatus(current, status));
  } catch (error) {
    log.warn({ err: error, request }, 'Cannot correct an audit record');
  }
}
