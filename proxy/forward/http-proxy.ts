/** Plain requests, carried by http-proxy-3. What it would do to requests and answers on its own account is kept from it. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import httpProxy from 'http-proxy-3';
import type { ProxyServer } from 'http-proxy-3';
import type { LastCatch } from '../../core/log/last-catch.ts';
import { ProxyFailure } from '../failure.ts';
import { passedTrailers } from '../response-headers.ts';
import { limitAnswer } from './answer-limits.ts';
import type { BackendAgent } from './backend-agent.ts';
import { connectLimitMs } from './dial.ts';
import type { Destination } from './forwarder.ts';
import type { Pools } from './pools.ts';
import { relay } from './relay.ts';

/** What a connection that was closed while it was idle says to whoever writes to it. */
const closedWhileIdle: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

/** One request on its way to a backend. */
interface Attempt {
  readonly to: Destination;
  readonly resolve: () => void;
  readonly reject: (error: ProxyFailure) => void;
  outgoing?: ClientRequest;
  answered?: boolean;
}

export class HttpProxy {
  readonly #pools: Pools;
  readonly #caught: LastCatch;
  readonly #attempts = new WeakMap<IncomingMessage, Attempt>();
  readonly #engine: ProxyServer;

  constructor(pools: Pools, caught: LastCatch) {
    this.#pools = pools;
    this.#caught = caught;
    this.#engine = httpProxy.createProxyServer({
      // The path as it is (http-proxy-3 would parse it as a URL and resolve `%2e%2e`), the answer in our hands.
      toProxy: true,
      prependPath: false,
      selfHandleResponse: true,
      connectTimeout: connectLimitMs,
    });
    this.#prepareRequests();
    this.#followAnswers();
  }

  /** Carries a request to its backend; once more on a new connection if a pooled one turned out dead and nothing is lost by it. */
  async forward(request: IncomingMessage, response: ServerResponse, to: Destination): Promise<void> {
    const { kept, fresh } = this.#pools.of(to);
    try {
      await this.#attempt(request, response, { to, agent: kept });
    } catch (error) {
      if (!isReplayable(request) || !this.#wasDeadConnection(request, error)) throw error;
      if (response.destroyed) return;
      await this.#attempt(request, response, { to, agent: fresh });
    }
  }

  async #attempt(
    request: IncomingMessage,
    response: ServerResponse,
    { to, agent }: { to: Destination; agent: BackendAgent },
  ): Promise<void> {
    if (agent.needsDialling) {
      await prepare(agent, response);
      if (response.destroyed) return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#attempts.set(request, { to, resolve, reject });
    const { host, port } = to.address;
    const { url, headers } = request;
    try {
      this.#engine.web(request, response, { target: { host, port }, agent }, (error) => {
        if (error === request.errored) this.#letGo(request);
        else reject(unreachable(error));
      });
    } catch (error) {
      // Node refuses to write what it let a client send: a character that is legal nowhere.
      reject(new ProxyFailure('bad-request', { cause: error }));
    } finally {
      Object.assign(request, { url, headers });
    }
    await promise;
  }

  #prepareRequests(): void {
    // Set at the last moment, after http-proxy-3 has had its way with the headers: it takes the chunked framing from a DELETE
    // or OPTIONS but sends the body all the same, which the backend would read as the next request.
    this.#engine.before('web', 'stream', (request) => {
      const attempt = this.#attempts.get(request);
      if (!attempt) throw new Error('A request without a destination');
      request.url = attempt.to.path;
      request.headers = attempt.to.headers;
      const onEnd = () => addTrailers(request, attempt.outgoing);
      request.once(
        'end',
        this.#caught.around(onEnd, () => attempt.outgoing?.destroy()),
      );
    });
    const onOutgoing = (outgoing: ClientRequest, request: IncomingMessage) => {
      const attempt = this.#attempts.get(request);
      if (!attempt) return;
      attempt.outgoing = outgoing;
      limitAnswer(outgoing);
      // http-proxy-3 loses the question mark of an empty query.
      outgoing.path = attempt.to.path;
      // An answer that is none (an upgrade nobody asked for) ends the connection without an error.
      outgoing.once('close', () => {
        if (!attempt.answered) attempt.reject(unreachable(new Error('The connection ended without an answer')));
      });
    };
    this.#engine.on(
      'proxyReq',
      this.#caught.around(onOutgoing, (outgoing) => outgoing.destroy()),
    );
  }

  #followAnswers(): void {
    const onAnswer = (incoming: IncomingMessage, request: IncomingMessage, response: ServerResponse) => {
      const attempt = this.#attempts.get(request);
      if (attempt) attempt.answered = true;
      try {
        relay(incoming, response, { prefix: attempt?.to.prefix ?? '', caught: this.#caught });
        attempt?.resolve();
      } catch (error) {
        incoming.destroy();
        attempt?.reject(unreachable(error));
      }
    };
    const cut = (incoming: IncomingMessage, _request: IncomingMessage, response: ServerResponse) => {
      incoming.destroy();
      response.destroy();
    };
    this.#engine.on('proxyRes', this.#caught.around(onAnswer, cut));
    // The client has left: nobody is there to be told.
    this.#engine.on('econnreset', (_error, request) => this.#letGo(request));
  }

  #letGo(request: IncomingMessage): void {
    const attempt = this.#attempts.get(request);
    attempt?.outgoing?.destroy();
    attempt?.resolve();
  }

  #wasDeadConnection(request: IncomingMessage, error: unknown): boolean {
    const attempt = this.#attempts.get(request);
    const cause = error instanceof ProxyFailure ? (error.cause as NodeJS.ErrnoException) : undefined;
    return attempt?.outgoing?.reusedSocket === true && !attempt.answered && closedWhileIdle.has(cause?.code);
  }
}

/** Has a connection made, unless the client leaves meanwhile. */
async function prepare(agent: BackendAgent, response: ServerResponse): Promise<void> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  response.once('close', leave);
  try {
    await agent.prepare(leaving.signal);
  } catch (error) {
    if (!response.destroyed) throw error instanceof ProxyFailure ? error : unreachable(error);
  } finally {
    response.off('close', leave);
  }
}

/** Whether sending a request twice does what sending it once does. */
function isReplayable({ method, headers }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return (method === 'GET' || method === 'HEAD') && !hasBody;
}

function addTrailers(request: IncomingMessage, outgoing: ClientRequest | undefined): void {
  const trailers = passedTrailers(request.rawTrailers);
  if (trailers.length === 0 || !outgoing?.chunkedEncoding || outgoing.destroyed) return;
  outgoing.addTrailers(trailers);
}

function unreachable(cause: unknown): ProxyFailure {
  return new ProxyFailure('backend-unreachable', { cause });
}
