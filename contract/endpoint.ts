/** Endpoints of the service API as data: path, required access, and the schemas of requests and answers. */
import { z } from 'zod';
import type { ZodType } from 'zod';
import type { ServiceErrorCode } from './errors.ts';
import type { Scope } from './scopes.ts';

/**
 * The scope that a token needs in the account of the request. `none`: no token is needed, and every origin may read the answer.
 * `spawn-token`: the same, but the path has a spawn token, which must be valid. `proof`: no token is needed, the body proves who the
 * caller is, and no other origin may send it. `any`: a valid token. `login`: the log-in of a user. `owner`: a token of an owner of
 * the account, with the scope `manage`. `admin`: the log-in of an administrator.
 */
export type EndpointAccess = 'none' | 'spawn-token' | 'proof' | 'any' | 'login' | Scope | 'owner' | 'admin';

/** Whether an endpoint needs a token. */
export function needsToken(access: EndpointAccess): access is Exclude<EndpointAccess, OpenAccess> {
  return access !== 'none' && access !== 'spawn-token' && access !== 'proof';
}

type OpenAccess = 'none' | 'spawn-token' | 'proof';

/** One endpoint. Path parameters are written `{name}`. */
export interface Endpoint<Path extends string = string, Body = unknown, Query = unknown> {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: Path;
  readonly summary: string;
  readonly access: EndpointAccess;
  /** If every field is optional, an empty or missing body is accepted, too. */
  readonly body: ZodType<Body>;
  readonly query: ZodType<Query>;
  /** The body of a successful answer; for a stream, each of its events. Default: `ok`. */
  readonly answer: ZodType;
  readonly stream: boolean;
  /** Whether a client that reconnects and has every event of the stream gets 204, after which browsers do not reconnect. */
  readonly endsWith204: boolean;
  /** Whether clients of the stream must ask for `text/event-stream`. */
  readonly mustAcceptStream: boolean;
  /** Whether the answer is a page for browsers instead of JSON. */
  readonly page: boolean;
  /** Whether the request or the answer is an image archive instead of JSON. */
  readonly archive: 'none' | 'request' | 'answer';
  /** The status of a successful answer. */
  readonly status: 200 | 201;
  /** Errors that it may return, besides those of every endpoint. Default: none. */
  readonly errors: readonly ServiceErrorCode[];
}

/** The answer to a change that has nothing else to report. */
export const ok = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Ok' });

const noFields = z.strictObject({});

type NoFields = z.infer<typeof noFields>;

type Required = 'summary' | 'access';

type EndpointDetails<Body, Query> = Pick<Endpoint, Required> &
  Partial<Omit<Endpoint<string, Body, Query>, Required | 'method' | 'path'>>;

/** An endpoint that reads. */
export function get<const Path extends string, Query = NoFields>(
  path: Path,
  details: EndpointDetails<NoFields, Query>,
): Endpoint<Path, NoFields, Query> {
  return endpoint('GET', path, details);
}

/** An endpoint that changes something. */
export function post<const Path extends string, Body = NoFields, Query = NoFields>(
  path: Path,
  details: EndpointDetails<Body, Query>,
): Endpoint<Path, Body, Query> {
  return endpoint('POST', path, details);
}

/** An endpoint that deletes. */
export function remove<const Path extends string>(
  path: Path,
  details: EndpointDetails<NoFields, NoFields>,
): Endpoint<Path, NoFields, NoFields> {
  return endpoint('DELETE', path, details);
}

function endpoint<Path extends string, Body, Query>(
  method: Endpoint['method'],
  path: Path,
  details: EndpointDetails<Body, Query>,
): Endpoint<Path, Body, Query> {
  return {
    method,
    path,
    body: noFields as unknown as ZodType<Body>,
    query: noFields as unknown as ZodType<Query>,
    answer: ok,
    errors: [],
    stream: false,
    endsWith204: false,
    mustAcceptStream: false,
    page: false,
    archive: 'none',
    status: 200,
    ...details,
  };
}

/** The parameters in an endpoint's path. */
export type PathParameters<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & PathParameters<Rest>
  : unknown;
