/** Writing answers, always with their length, never compressed, never through a framework that would touch their type. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { registryErrors } from './errors.ts';
import type { RegistryError } from './errors.ts';

/** A refused client is listened to this long and this far before the connection is cut, so that it reads the answer. */
const lingerBytes = 8 * 1024 * 1024;
const lingerMs = 5_000;

/** Answers with a body, or with none and a length of 0. */
export function answer(
  response: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  body: Uint8Array = new Uint8Array(),
): void {
  // RFC 9110, section 8.6: no length on 204.
  const length = status === 204 || status === 304 ? {} : { 'content-length': body.length };
  response.writeHead(status, { ...length, ...headers });
  response.end(body);
}

export function answerJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  answer(response, status, { 'content-type': 'application/json', ...headers }, Buffer.from(JSON.stringify(body)));
}

/** Answers with an entry of the catalogue. `id` is the request's, which is in the log too. */
export async function answerError(
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  { refusal, id }: { readonly refusal: RegistryError; readonly id: string },
  signal: AbortSignal,
): Promise<void> {
  if (!(await drained(request, signal))) response.setHeader('connection', 'close');
  const { code, status, message } = registryErrors[refusal.entry];
  // In the message, since docker shows nothing else to the person who pushes.
  const sentence = refusal.detail === undefined ? message : `${message}: ${refusal.detail}`;
  const detail = status >= 500 ? { id } : undefined;
  answerJson(response, status, { errors: [{ code, message: sentence, detail }] }, refusal.headers);
}

/** Whether the request's body came to its end soon: then the connection can be kept. */
async function drained(request: IncomingMessage, signal: AbortSignal): Promise<boolean> {
  if (request.complete || request.destroyed || signal.aborted) return request.complete;
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > lingerBytes) resolve();
  };
  const onEnd = () => resolve();
  const timer = setTimeout(onEnd, lingerMs);
  signal.addEventListener('abort', onEnd);
  request.on('data', onData).on('end', onEnd).on('close', onEnd);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', onEnd);
  request.off('data', onData).off('end', onEnd).off('close', onEnd);
  return request.complete;
}
