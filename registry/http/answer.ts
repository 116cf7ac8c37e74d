/** Writing answers, always with their length, never compressed, never through a framework that would touch their type. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { jsonAnswer } from '../../core/http/json.ts';
import { answerEarly } from '../../core/http/linger.ts';
import { registryErrors } from '../errors.ts';
import type { ErrorEntry, RegistryError, RegistryErrorName } from '../errors.ts';

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
  const { status, reasonPhrase }: ErrorEntry = registryErrors[refusal.entry];
  if (reasonPhrase !== undefined) response.statusMessage = reasonPhrase;
  const detail = status >= 500 ? { id } : undefined;
  const { headers, body } = jsonAnswer(status, errorBody(refusal.entry, { more: refusal.detail, detail }));
  await answerEarly({ request, response }, { status, headers: { ...headers, ...refusal.headers }, body }, signal);
}

/** The body that an entry of the catalogue is told with: OCI distribution-spec, "Error Codes". */
export function errorBody(
  entry: RegistryErrorName,
  { more, detail }: { readonly more?: string | undefined; readonly detail?: object | undefined } = {},
): object {
  const { code, message } = registryErrors[entry];
  // In the message, since docker shows nothing else to the person who pushes.
  return { errors: [{ code, message: more === undefined ? message : `${message}: ${more}`, detail }] };
}
