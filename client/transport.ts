/** Sends requests to the API, and retries them. */
import { endpoints } from './contract.ts';
import type { Endpoints } from './contract.ts';
import { BerthError, errorOf } from './errors.ts';
import { newTimeLimit, wait } from './time.ts';

export interface TransportOptions {
  /** The address of the API, as in `https://berth.example`. */
  readonly url: string;
  /** An access token. Not needed for statuses. */
  readonly token?: string | undefined;
  /** How long one attempt may take. Default: 30 s. */
  readonly timeoutMs?: number | undefined;
  /** The maximum number of retries of a request, where they are safe, and of consecutive failures to reopen a stream. Default: 5. */
  readonly retries?: number | undefined;
  /** The wait before the first retry; it doubles each time. Default: 250 ms. */
  readonly retryDelayMs?: number | undefined;
  /** Default: the `fetch` of the browser or of Node. */
  readonly fetch?: typeof fetch | undefined;
}

/** Endpoints that answer with JSON and take no archive. */
export type EndpointName = Exclude<keyof Endpoints, ArchiveEndpoint>;

/** Endpoints whose request or response is an image archive. */
export type ArchiveEndpoint = 'uploadImage' | 'imageArchive';

/** The input of a call. Fields that the endpoint does not need may be omitted. */
export interface CallInput<Name extends keyof Endpoints> {
  readonly path: Endpoints[Name]['path'];
  readonly query?: Endpoints[Name]['query'] | undefined;
  readonly body?: Endpoints[Name]['body'] | undefined;
}

export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long one attempt may take. Default: that of the client. */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether the request may be handled twice, so that it can be retried when no response arrives. Default: whether it only reads.
   * A request that the API rejects with 429 or 503 has not been handled: it is always retried.
   */
  readonly repeatable?: boolean | undefined;
  /** Called before a retry of a request that got no response: the API may have handled it. */
  readonly onLost?: (() => void) | undefined;
}

export interface ListOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long one attempt to get a page may take. Default: that of the client. */
  readonly timeoutMs?: number | undefined;
  /** The maximum number of items on a page: small pages arrive sooner, large pages need fewer requests. Default: the server's. */
  readonly pageSize?: number | undefined;
}

/** Endpoints that answer with a page of a list, and with the cursor of the next page. */
type ListName = {
  [Name in EndpointName]: 'next_cursor' extends keyof Endpoints[Name]['answer'] ? Name : never;
}[EndpointName];

type Answer<Name extends EndpointName> = Endpoints[Name]['answer'];

type Item<Items> = Items extends readonly (infer T)[] ? T : never;

export interface PreparedRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | ReadableStream<Uint8Array> | Blob;
}

const longestDelayMs = 10_000;

/** If the server asks for a longer wait, the call fails, so that the application can decide. */
const longestRetryAfterMs = 60_000;

/** Sends requests to one API. */
export class Transport {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #fetch: typeof fetch;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly #retryDelayMs: number;

  constructor(options: TransportOptions) {
    this.#url = checkedUrl(options.url);
    this.#token = checkedToken(options.token);
    // Browsers refuse to call `fetch` as a method of another object.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.timeoutMs = options.timeoutMs ?? 30_000;
    this.retries = options.retries ?? 5;
    this.#retryDelayMs = options.retryDelayMs ?? 250;
  }

  /** Calls an endpoint and reads the JSON of its response. Retries the request where that is safe. */
  async json<Name extends EndpointName>(
    name: Name,
    input: CallInput<Name>,
    { signal, timeoutMs = this.timeoutMs, repeatable = endpoints[name].method === 'GET', onLost }: SendOptions = {},
  ): Promise<Endpoints[Name]['answer']> {
    const prepared = this.prepare(name, input);
    for (let attempt = 1; ; attempt += 1) {
      const limit = newTimeLimit(`No response within ${timeoutMs} ms`, signal);
      try {
        limit.restart(timeoutMs);
        return (await readJson(await this.send(prepared, limit.signal))) as Endpoints[Name]['answer'];
      } catch (error) {
        signal?.throwIfAborted();
        const problem = problemOf(error, limit.signal);
        const mayRetry = isTemporary(problem) && (repeatable || isRejected(problem));
        if (!mayRetry || attempt > this.retries) throw problem;
        if (!isRejected(problem)) onLost?.();
        await wait((problem.retryAfterMs ?? 0) + this.backOffMs(attempt), signal);
      } finally {
        limit.end();
      }
    }
  }

  /** Yields the items of a list, from the field `field` of its pages. Requests each page when the previous items are consumed. */
  async *list<Name extends ListName, Field extends keyof Answer<Name>>(
    name: Name,
    field: Field,
    { path, query }: CallInput<Name>,
    { pageSize, signal, timeoutMs }: ListOptions = {},
  ): AsyncGenerator<Item<Answer<Name>[Field]>, void, undefined> {
    let cursor: string | undefined;
    do {
      const input = { path, query: { ...query, limit: pageSize, cursor } } as CallInput<Name>;
      const page: Answer<Name> = await this.json(name, input, { signal, timeoutMs });
      yield* page[field] as Item<Answer<Name>[Field]>[];
      cursor = page.next_cursor;
    } while (cursor !== undefined);
  }

  /** Returns a request to an endpoint, ready to be sent. Throws `TypeError` for a name that is not valid in a path. */
  prepare<Name extends keyof Endpoints>(name: Name, { path, query, body }: CallInput<Name>): PreparedRequest {
    const { method, needsToken, path: template } = endpoints[name];
    return {
      url: this.#url + filledPath(template, path ?? {}) + queryText(query),
      method,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(needsToken && this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
  }

  /** Sends a request once, and resolves with the response when its head has arrived. Rejects with the error that it reports. */
  async send({ url, ...request }: PreparedRequest, signal: AbortSignal | undefined): Promise<Response> {
    // A redirect would turn POST into GET, and might lead to another host.
    const response = await this.#fetch(url, { ...request, redirect: 'manual', signal: signal ?? null });
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  /** How long to wait after consecutive failures: longer each time, and randomized, so that clients do not retry together. */
  backOffMs(failures: number, firstMs = this.#retryDelayMs): number {
    const doubledMs = firstMs * 2 ** Math.max(0, failures - 1);
    return Math.min(longestDelayMs, doubledMs) * (0.5 + Math.random() / 2);
  }
}

/** The error of an attempt. `limit` is the signal of its time limit, if it has one. */
export function problemOf(error: unknown, limit?: AbortSignal): BerthError {
  if (limit?.reason instanceof BerthError) return limit.reason;
  if (error instanceof BerthError) return error;
  return new BerthError('Unreachable', 'No response from the API. Check the address and the network', { cause: error });
}

/** Whether the API has rejected a request without handling it, and asks for a retry. */
function isRejected({ status, retryAfterMs }: BerthError): boolean {
  return (status === 429 || status === 503) && retryAfterMs !== undefined;
}

/** Whether the same request may succeed soon. */
export function isTemporary({ code, status, retryAfterMs = 0 }: BerthError): boolean {
  if (retryAfterMs > longestRetryAfterMs) return false;
  return code === 'Unreachable' || code === 'TimedOut' || (status !== undefined && temporary.has(status));
}

/** Time-outs, limits, and proxies whose server restarts. */
const temporary: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

export async function readJson(response: Response): Promise<unknown> {
  if (!/^application\/json\b/.test(response.headers.get('content-type') ?? '')) {
    throw new BerthError('UnexpectedResponse', 'The response is not JSON. Check the address of the API', {
      status: response.status,
    });
  }
  return await response.json();
}

function checkedUrl(text: string): string {
  const { protocol, username, password, search, hash } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') throw new TypeError('url: Use an address with https: or http:');
  if (username || password || search || hash) throw new TypeError('url: Use an address without a password, ? and #');
  return text.replace(/\/+$/, '');
}

/** `fetch` would reject each request with such a token, as it does when there is no response. */
function checkedToken(token: string | undefined): string | undefined {
  if (token !== undefined && /[^!-~]/.test(token)) {
    throw new TypeError('token: Use an access token, which consists of ASCII characters without blanks');
  }
  return token;
}

function filledPath(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{(\w+)\}/g, (_braces, name: string) => {
    const value = values[name] ?? '';
    // `fetch` would remove these segments, and the path could be that of another endpoint.
    if (value === '' || value === '.' || value === '..') {
      throw new TypeError(`${name}: ${JSON.stringify(value)} is not a valid name`);
    }
    return encodeURIComponent(value);
  });
}

function queryText(query: object | undefined): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? '' : `?${given.toString()}`;
}
