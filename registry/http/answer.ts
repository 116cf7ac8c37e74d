/** Writes answers: always with their length, never compressed, and not by a framework that would change their content type. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { jsonAnswer } from '../../core/http/json.ts';
import { answerEarly } from '../../core/http/linger.ts';
import { registryErrors } from '../error-catalogue.ts';
import type { ErrorEntry, RegistryErrorName } from '../error-catalogue.ts';
import type { RegistryError } from '../errors.ts';

/** Answers with a body, which is empty by default. */
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

/** Answers with an error of the catalogue. A 5xx contains the request's `id`, which is in the log too. */
export async function answerError(
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  { error, id }: { readonly error: RegistryError; readonly id: string },
  signal: AbortSignal,
): Promise<void> {
  const { status, reasonPhrase }: ErrorEntry = registryErrors[error.entry];
  if (reasonPhrase !== undefined) response.statusMessage = reasonPhrase;
  const detail = status >= 500 ? { id } : undefined;
  const { headers, body } = jsonAnswer(status, errorBody(error.entry, { more: error.detail, detail }));
  await answerEarly({ request, response }, { status, headers: { ...headers, ...error.headers }, body }, signal);
}

/** The body of an error: OCI distribution-spec, "Error Codes". */
export function errorBody(
  entry: RegistryErrorName,
  { more, detail }: { readonly more?: string | undefined; readonly detail?: object | undefined } = {},
): object {
  const { code, message } = registryErrors[entry];
  // In the message, because docker shows nothing else to the user.
  return { errors: [{ code, message: more === undefined ? message : `${message}: ${more}`, detail }] };
}
