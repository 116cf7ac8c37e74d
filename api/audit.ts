/** Records requests that change something. */
import type { IncomingMessage } from 'node:http';
import { allEndpoints } from '../contract/all-endpoints.ts';
import { needsToken } from '../contract/endpoint.ts';
import type { Endpoint } from '../contract/endpoint.ts';
import { serviceErrors } from '../contract/errors.ts';
import type { ServiceErrorCode } from '../contract/errors.ts';
import type { ImageObject } from '../contract/service.ts';
import { clientAddress } from '../core/http/client-address.ts';
import { requestId } from '../core/http/request-id.ts';
import { publicTokenId } from '../model/access-token.ts';
import { ApiError } from '../model/api-error.ts';
import { auditDetails, auditRecords, newAuditRecord, withStatus } from '../model/audit.ts';
import type { AuditRecord } from '../model/audit.ts';
import { backends } from '../model/backend.ts';
import { permissionIn } from '../model/permissions.ts';
import type { Caller } from './access.ts';
import type { Api } from './dependencies.ts';

/**
 * Connects use a service and do not administer it: an account makes thousands of them, and the list of backends shows what they
 * spawned. Each record would cost a durable write.
 */
const unrecorded = new Set([
  'connect',
  'connectEnvironment',
  'v1Spawn',
  'v1Fetch',
  'earliestSpawn',
  'earliestFetch',
  'earliestTokenSpawn',
]);

const namesOfEndpoints = new Map(Object.entries(allEndpoints).map(([name, endpoint]) => [endpoint, name]));

/** What a record needs of a request. */
export interface AuditedCall {
  readonly parameters: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly request: IncomingMessage;
}

/** Refusals of anonymous requests that nothing limits. Their records would fill the store. */
const unlimited: ReadonlySet<ServiceErrorCode> = new Set(['TooManyRequests', 'CliLoginNotFound']);

/**
 * Runs the handler of a request, and records the request if it changes something. The record is written before the handler runs, so
 * that no change lacks one, and gets the status afterwards. A request without a token is recorded as `recordedAfterwards` does.
 */
export function audited<Audited extends AuditedCall>(
  api: Api,
  endpoint: Endpoint,
  call: Audited,
  handle: (api: Api, call: Audited) => Promise<unknown>,
): Promise<unknown> {
  const action = namesOfEndpoints.get(endpoint);
  if (endpoint.method === 'GET' || action === undefined || unrecorded.has(action)) return handle(api, call);
  const recording = { action, call, status: endpoint.status, handle: async () => await handle(api, call) };
  return endpoint.access === 'proof' ? recordedAfterwards(api, recording) : recorded(api, endpoint, recording);
}

/** A request that is recorded, and the status of its answer if the handler succeeds. */
interface Recorded<Result> {
  readonly action: string;
  readonly call: AuditedCall;
  readonly status: number;
  readonly handle: () => Promise<Result>;
}

/**
 * Runs a handler, and then records the request unless it was refused before it was counted (`unlimited`), so that the limits of
 * log-ins limit the records as well. Fails if the request cannot be recorded.
 */
export async function recordedAfterwards<Result>(
  api: Api,
  { action, call, status, handle }: Recorded<Result>,
): Promise<Result> {
  const record = async (outcome: number) => {
    const written = await recordOf(api, action, call);
    if (written) await api.store.insert(auditRecords, withStatus(written, outcome));
  };
  const result = await handle().catch(async (error: unknown) => {
    if (!(error instanceof ApiError && unlimited.has(error.code))) await record(statusOf(error));
    throw error;
  });
  await record(status);
  return result;
}

async function recorded(
  api: Api,
  endpoint: Endpoint,
  { action, call, status: succeeded, handle }: Recorded<unknown>,
): Promise<unknown> {
  const record = await recordOf(api, action, call);
  if (!record) return await handle();
  await api.store.insert(auditRecords, record);
  // The response reports the outcome of the handler, even if the status cannot be recorded.
  const complete = async (status: number, details?: object) => {
    const change = (current: AuditRecord) => withStatus(current, status, details);
    await api.store
      .update(auditRecords, record.id, change)
      .catch((error: unknown) =>
        api.log.warn({ err: error, request: record.request }, 'Cannot complete an audit record'),
      );
  };
  const result = await handle().catch(async (error: unknown) => {
    await complete(statusOf(error));
    throw error;
  });
  await complete(succeeded, endpoint.archive === 'request' ? imageIn(result) : {});
  return result;
}

function statusOf(error: unknown): number {
  return error instanceof ApiError ? serviceErrors[error.code].status : 500;
}

/** The image in an uploaded archive, known only after the archive was read. */
function imageIn(result: unknown): object {
  const { tag, digest } = result as Partial<ImageObject>;
  return { tag, digest };
}

async function recordOf(
  api: Api,
  action: string,
  { parameters, body, caller, request }: AuditedCall,
): Promise<AuditRecord | undefined> {
  const { permissions } = caller;
  const account = await accountOf(api, parameters as Readonly<Record<string, string>>, caller);
  // A request to an account in which the caller has no rights is rejected, and does not concern that account.
  if (account === undefined) return undefined;
  const isByToken = needsToken(caller.access);
  const email = emailIn(body);
  return newAuditRecord({
    account,
    at: await api.store.now(),
    action,
    details: auditDetails(parameters as object, body),
    ...(isByToken && permissions.user !== undefined && { user: permissions.user }),
    ...(isByToken && { token: publicTokenId({ id: permissions.token }) }),
    ...(!isByToken && email !== undefined && { user: email }),
    address: clientAddress(request, api.behindLoadBalancer),
    request: requestId(request),
  });
}

/** The account that a request concerns, empty for the platform; `undefined` if the caller has no rights in that account. */
async function accountOf(
  api: Api,
  { account, backend_id, backend_name }: Readonly<Record<string, string>>,
  { permissions }: Caller,
): Promise<string | undefined> {
  const backend = backend_id ?? backend_name;
  const named = account ?? (backend === undefined ? undefined : (await api.store.get(backends, backend))?.account);
  if (named !== undefined) return permissionIn(permissions, named) ? named : undefined;
  return backend === undefined ? (permissions.account ?? '') : undefined;
}

function emailIn(body: unknown): string | undefined {
  const { user_email: email } = (body ?? {}) as { user_email?: unknown };
  return typeof email === 'string' ? email.toLowerCase() : undefined;
}
