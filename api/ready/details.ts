/** Details on the page of an ended backend, for users who may read its log. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Backend } from '../../model/backend.ts';
import { covers, permissionIn } from '../../model/permissions.ts';
import { sessionPermissions } from '../access.ts';
import { lastLogLines } from '../backend-streams.ts';
import type { Api } from '../dependencies.ts';
import { readableLine } from './log-text.ts';

/** Enough for the trace of an error. The stream of the log has the rest. */
const maxLines = 100;

/** A user waits for the page, which is useful without the log, too. */
const logTimeoutMs = 5000;

export interface Details {
  /** Names and values, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** The last lines of the log; `undefined` if its node does not answer. */
  readonly log: readonly string[] | undefined;
}

/** `log-in` if no user is logged in: the page then offers a log-in. `undefined` for users that may not read the log. */
export async function detailsFor(
  api: Api,
  backend: Backend,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<Details | 'log-in' | undefined> {
  const permissions = await sessionPermissions(api, request);
  if (!permissions) return 'log-in';
  const permission = permissionIn(permissions, backend.account);
  if (!permission?.scopes.includes('read') || !covers(permission, backend.service)) return undefined;
  return { fields: fieldsOf(backend), log: await logOf(api, backend, response) };
}

function fieldsOf({ id, account, service, history }: Backend): [string, string][] {
  const { time, exitCode, terminationReason: reason, terminationKind: kind } = history.at(-1) ?? {};
  const fields = {
    Service: `${account}/${service}`,
    Backend: id,
    'Exit code': exitCode,
    Stopped: reason && (kind ? `${reason} (${kind})` : reason),
    Ended: time?.toISOString(),
  };
  return Object.entries(fields).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]]));
}

async function logOf(api: Api, backend: Backend, response: ServerResponse): Promise<string[] | undefined> {
  const ended = new AbortController();
  using _limit = api.clock.after(logTimeoutMs, () => ended.abort());
  response.once('close', () => ended.abort());
  try {
    return (await lastLogLines(api, backend, maxLines, ended.signal)).map(readableLine);
  } catch (error) {
    api.log.warn({ err: error, backend: backend.id }, 'The log for a readiness page cannot be read');
    return undefined;
  }
}
