/** Writing answers, always with their length, never compressed, never through a framework that would touch their type. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { drained } from '../core/http/linger.ts';
import { registryErrors } from './errors.ts';
import type { RegistryError } from './errors.ts';

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
  // Who is cut for being slow has been listened to long enough.
  const kept = refusal.entry === 'too-slow' ? request.complete : await drained(request, signal);
  if (!kept) response.setHeader('connection', 'close');
  const { code, status, message } = registryErrors[refusal.entry];
  // In the message, since docker shows nothing else to the person who pushes.
  const sentence = refusal.detail === undefined ? message : `${message}: ${refusal.detail}`;
  const detail = status >= 500 ? { id } : undefined;
  answerJson(response, status, { errors: [{ code, message: sentence, detail }] }, refusal.headers);
}
