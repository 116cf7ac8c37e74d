/** A client of the service API for stories: plain HTTP, with responses parsed by the contract's schemas. */
import type { z } from 'zod';
import { backendMetadata, statusObject } from '../../../contract/backend.ts';
import { connectResponse } from '../../../contract/connect.ts';
import type { ConnectRequest, ConnectResponse } from '../../../contract/connect.ts';
import type { BackendStatus } from '../../../contract/statuses.ts';
import type { TestPlatform } from './platform.ts';

export type StatusObject = z.infer<typeof statusObject>;
export type BackendMetadata = z.infer<typeof backendMetadata>;

type ApiInit = Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> };

/** Longer than a backend needs for any status on a busy machine. */
const defaultTimeoutMs = 90_000;

type ApiAccess = Pick<TestPlatform, 'apiUrl' | 'token'>;

/**
 * Sends a request to the API with the account's token. Repeats a request that is answered with 408: `fetch` keeps the connection of an
 * aborted request, whose head never arrives, and may use it when its time has just ended. The API has not read such a request, so a
 * client may repeat it (RFC 9110, 15.5.9), as the TypeScript client does.
 */
export async function api(platform: ApiAccess, path: string, init: ApiInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${platform.token}`, 'content-type': 'application/json', ...init.headers };
  const send = async () => await fetch(`${platform.apiUrl}${path}`, { ...init, headers });
  const answer = await send();
  return answer.status === 408 ? await send() : answer;
}

/** Connects to a service of the platform's account. Throws an error with the response if that fails. */
export async function connect(
  platform: TestPlatform,
  service: string,
  request: ConnectRequest = {},
): Promise<ConnectResponse> {
  const path = `/v2/service/${platform.account}/${service}/connect`;
  const answer = await expectOk(await api(platform, path, { method: 'POST', body: JSON.stringify(request) }));
  return connectResponse.parse(await answer.json());
}

/** A backend with its history. */
export async function backendOf(platform: TestPlatform, backendId: string): Promise<BackendMetadata> {
  const answer = await expectOk(await api(platform, `/v2/backend/${backendId}`));
  return backendMetadata.parse(await answer.json());
}

/** Stops a backend. */
export async function terminate(platform: TestPlatform, backendId: string, hard?: boolean): Promise<void> {
  const body = JSON.stringify(hard === undefined ? {} : { hard });
  await expectOk(await api(platform, `/v2/backend/${backendId}/terminate`, { method: 'POST', body }));
}

/** Follows a backend's statuses: first its history, then changes, until it has ended. */
export async function* statusStream(
  platform: TestPlatform,
  backendId: string,
  signal?: AbortSignal,
): AsyncGenerator<StatusObject> {
  const events = eventStream(platform, `/v2/backend/${backendId}/status/stream`, { signal });
  for await (const { data } of events) yield statusObject.parse(JSON.parse(data));
}

export interface StreamEvent {
  readonly id: string;
  readonly data: string;
}

/** The server-sent events of a stream until it ends, as a browser receives them. */
export async function* eventStream(
  platform: ApiAccess,
  path: string,
  options: { readonly signal?: AbortSignal | undefined; readonly lastEventId?: string } = {},
): AsyncGenerator<StreamEvent> {
  const headers = options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId };
  const answer = await expectOk(await api(platform, path, { headers, signal: options.signal ?? null }));
  let text = '';
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    const events = (text + chunk).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const fields = event.split('\n').map((line) => line.split(/: (.*)/s));
      const data = fields.filter(([name]) => name === 'data').map(([, value = '']) => value);
      const id = fields.find(([name]) => name === 'id')?.[1] ?? '';
      if (data.length > 0) yield { id, data: data.join('\n') };
    }
  }
}

/** Waits until a backend has a status, and returns it. Throws if the backend ends first, or after a time limit. */
export async function waitFor(
  platform: TestPlatform,
  backendId: string,
  status: BackendStatus,
  timeoutMs = defaultTimeoutMs,
): Promise<StatusObject> {
  const seen: string[] = [];
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    for await (const each of statusStream(platform, backendId, signal)) {
      if (each.status === status) return each;
      seen.push(each.status);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  throw new Error(`Backend ${backendId} did not become ${status} within ${timeoutMs} ms, but ${seen.join(', ')}`);
}

/** Connects, and waits until the backend is ready. */
export async function connectReady(
  platform: TestPlatform,
  service: string,
  request: ConnectRequest = {},
): Promise<ConnectResponse> {
  const session = await connect(platform, service, request);
  await waitFor(platform, session.backend_id, 'ready');
  return session;
}

async function expectOk(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  throw new Error(`${answer.status} from ${new URL(answer.url).pathname}: ${await answer.text()}`);
}
