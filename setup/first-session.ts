/** Starts the first session of the sample application with plain HTTP requests, as a user could with curl. */
import { connectResponse } from '../contract/connect.ts';
import type { ConnectRequest, ConnectResponse } from '../contract/connect.ts';
import { statusObject } from '../contract/backend.ts';

/** A client of the service API. */
export interface Caller {
  readonly apiUrl: string;
  readonly token: string;
}

/** A ready backend listens already, so its first answer should take milliseconds. */
const firstAnswerTimeoutMs = 10_000;

/** Creates a service, unless the account has it already. */
export async function ensureService(caller: Caller, account: string, service: string): Promise<void> {
  const known = await call(caller, 'GET', `/v2/service/${account}/${service}`);
  if (known.ok) return;
  const made = await call(caller, 'POST', `/v2/account/${account}/service`, { name: service });
  if (!made.ok && made.status !== 409) throw new Error(await problemOf(made));
}

/** Requests a connection URL. */
export async function connect(caller: Caller, service: string, request: ConnectRequest): Promise<ConnectResponse> {
  const answer = await call(caller, 'POST', `/v2/service/${service}/connect`, request);
  if (!answer.ok) throw new Error(await problemOf(answer));
  return connectResponse.parse(await answer.json());
}

/** Follows the status stream of a backend until it is ready, and calls `onStatus` with each status. Throws if it ends earlier. */
export async function untilReady(
  session: ConnectResponse,
  onStatus: (status: string) => void = () => {},
): Promise<void> {
  const answer = await fetch(`${session.status_url}/stream`);
  if (!answer.ok || !answer.body) throw new Error(await problemOf(answer));
  let text = '';
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (text + chunk).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data:')) continue;
      const { status } = statusObject.parse(JSON.parse(line.slice('data:'.length)));
      onStatus(status);
      if (status === 'ready') return;
      if (status === 'terminated') throw new Error(`The session ended before it was ready, see ${session.status_url}`);
    }
  }
  throw new Error('The status stream ended before the session was ready');
}

/** Requests the page at a connection URL, as a browser would. */
export async function fetchPage(url: string): Promise<void> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(firstAnswerTimeoutMs) });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`${answer.status} from the session's URL (${answer.headers.get('x-berth-error')})`);
}

async function call({ apiUrl, token }: Caller, method: string, path: string, body?: unknown) {
  return await fetch(`${apiUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function problemOf(answer: Response): Promise<string> {
  return `${answer.status} from ${new URL(answer.url).pathname}: ${(await answer.text()).slice(0, 500)}`;
}
