/** What an endpoint of the service API is: its path, who may call it, and the schemas of what it takes and answers. */
import { z } from 'zod';
import type { ZodType } from 'zod';
import type { ServiceErrorCode } from './errors.ts';
import type { Scope } from './scopes.ts';

/** The scope that an access token needs. `none`: no token is needed, and every origin may read the answer. */
export type EndpointAccess = 'none' | Scope;

/** One endpoint. Path parameters are written `{name}`. */
export interface Endpoint<Path extends string = string, Body = unknown, Query = unknown> {
  readonly method: 'GET' | 'POST';
  readonly path: Path;
  readonly summary: string;
  readonly access: EndpointAccess;
  /** If every field is optional, an empty or missing body is accepted, too. */
  readonly body: ZodType<Body>;
  readonly query: ZodType<Query>;
  /** The body of a successful answer; for a stream, each of its events. */
  readonly answer: ZodType;
  readonly stream: boolean;
  /** Whether the request or the answer is an image archive instead of JSON. */
  readonly archive: 'none' | 'request' | 'answer';
  /** The status of a successful answer. */
  readonly status: 200 | 201;
  readonly errors: readonly ServiceErrorCode[];
}

const noFields = z.strictObject({});
/** The answer to a change that has nothing else to report. */
export const ok = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Ok' });

type NoFields = z.infer<typeof noFields>;

type EndpointDetails<Body, Query> = Partial<
  Pick<Endpoint<string, Body, Query>, 'body' | 'query' | 'stream' | 'archive' | 'status'>
> &
  Pick<Endpoint, 'summary' | 'access' | 'answer' | 'errors'>;

/** An endpoint that reads. */
export function get<const Path extends string, Query = NoFields>(
  path: Path,
  details: EndpointDetails<NoFields, Query>,
): Endpoint<Path, NoFields, Query> {
  return {
    method: 'GET',
    path,
    body: noFields,
    query: noFields as unknown as ZodType<Query>,
    stream: false,
    archive: 'none',
    status: 200,
    ...details,
  };
}

/** An endpoint that changes something. */
export function post<const Path extends string, Body = NoFields, Query = NoFields>(
  path: Path,
  details: EndpointDetails<Body, Query>,
): Endpoint<Path, Body, Query> {
  return {
    method: 'POST',
    path,
    body: noFields as unknown as ZodType<Body>,
    query: noFields as unknown as ZodType<Query>,
    stream: false,
    archive: 'none',
    status: 200,
    ...details,
  };
}

/** The parameters in an endpoint's path. */
export type PathParameters<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & PathParameters<Rest>
  : unknown;
