/** The connect endpoint of the development server: forwards to the API after the build, and empties `ready_url`. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { serviceErrors } from '../../contract/errors.ts';
import type { ServiceErrorCode } from '../../contract/errors.ts';
import { sendJson } from '../../core/http/json.ts';

/** The largest body that the API accepts. Reading stops here, because the API refuses anything larger. */
const maxBodyBytes = 1024 * 1024;

/** Forwards a connect request of a client to the API, and the answer to the client. */
export async function relayConnect(
  request: IncomingMessage,
  response: ServerResponse,
  { url, token, signal }: { readonly url: string; readonly token: string; readonly signal: AbortSignal },
): Promise<void> {
  const type = request.headers['content-type'];
  const body = await readBody(request);
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...(type !== undefined && { 'content-type': type }) },
    body: body.length > 0 ? new Uint8Array(withoutTagAndCluster(body)) : null,
    signal,
  });
  const content = (await answer.json()) as object;
  const after = answer.headers.get('retry-after');
  if (after !== null) response.setHeader('retry-after', after);
  sendJson(response, answer.status, answer.ok && 'ready_url' in content ? { ...content, ready_url: '' } : content);
}

/** Answers with an error of the service API. */
export function sendError(response: ServerResponse, code: ServiceErrorCode, message: string): void {
  const { status } = serviceErrors[code];
  sendJson(response, status, { error: { code, message, status, id: randomUUID() } });
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The connection stays open, so that the client can read the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBodyBytes) break;
  }
  return Buffer.concat(chunks);
}

/** Removes tag and cluster: the development server has one image and one cluster, whatever the request names. */
function withoutTagAndCluster(body: Buffer): Buffer {
  try {
    const value = JSON.parse(body.toString()) as { spawn?: { tag?: unknown; cluster?: unknown } };
    if (typeof value.spawn !== 'object') return body;
    const { tag: _tag, cluster: _cluster, ...spawn } = value.spawn;
    return Buffer.from(JSON.stringify({ ...value, spawn }));
  } catch {
    // The API reports the error.
    return body;
  }
}
