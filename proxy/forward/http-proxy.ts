/** Forwards plain requests with http-proxy-3, and undoes its changes to requests and answers. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import httpProxy from 'http-proxy-3';
import type { ProxyServer } from 'http-proxy-3';
import type { ErrorBoundary } from '../../core/log/error-boundary.ts';
import { ProxyError, unreachableError } from '../errors.ts';
import { hasBody, isReplayable } from '../headers.ts';
import { forwardedTrailers } from '../response-headers.ts';
import { limitAnswer } from './answer-limits.ts';
import type { BackendAgent } from './backend-agent.ts';
import { connectLimitMs, dialFor } from './dial.ts';
import type { Destination } from './forwarder.ts';
import { relayInterim } from './interim.ts';
import type { Pools } from './pools.ts';
import { relay } from './relay.ts';

/** The error codes of writing to a connection that the backend closed while it was idle. */
const closedWhileIdle: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

/** One attempt to forward a request. */
interface Attempt {
  readonly to: Destination;
  readonly resolve: () => void;
  readonly reject: (error: ProxyError) => void;
  outgoing?: ClientRequest;
  answered?: boolean;
}

export class HttpProxy {
  readonly #pools: Pools;
  readonly #errorBoundary: ErrorBoundary;
  readonly #attempts = new WeakMap<IncomingMessage, Attempt>();
  readonly #server: ProxyServer;

  constructor(pools: Pools, errorBoundary: ErrorBoundary) {
    this.#pools = pools;
    this.#errorBoundary = errorBoundary;
    this.#server = httpProxy.createProxyServer({
      // Keeps the path as it is. Otherwise http-proxy-3 would parse it as a URL and resolve `%2e%2e`.
      toProxy: true,
      prependPath: false,
      selfHandleResponse: true,
      connectTimeout: connectLimitMs,
    });
    this.#prepareRequests();
    this.#handleAnswers();
  }

  /** Forwards a request. Retries once on a new connection if a pooled one was dead and the request can be repeated safely. */
  async forward(request: IncomingMessage, response: ServerResponse, to: Destination): Promise<void> {
    const { kept, fresh } = this.#pools.of(to);
    const listeners = response.listeners('close');
    try {
      await this.#attempt(request, response, { to, agent: kept });
    } catch (error) {
      if (!isReplayable(request.method, hasBody(request)) || !this.#wasDeadConnection(request, error)) throw error;
      if (response.destroyed) return;
      // http-proxy-3 still listens for the first attempt.
      const added = response.listeners('close').filter((each) => !listeners.includes(each));
      for (const each of added) response.off('close', each as () => void);
      await this.#attempt(request, response, { to, agent: fresh });
    }
  }

  async #attempt(
    request: IncomingMessage,
    response: ServerResponse,
    { to, agent }: { to: Destination; agent: BackendAgent },
  ): Promise<void> {
    if (agent.needsDialling) {
      await dialFor(response, (signal) => agent.prepare(signal));
      if (response.destroyed) return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#attempts.set(request, { to, resolve, reject });
    const { host, port } = to.address;
    const { url, headers } = request;
    try {
      this.#server.web(request, response, { target: { host, port }, agent }, (error) => {
        if (error === request.errored) this.#cancel(request);
        else reject(unreachableError(error));
      });
    } catch (error) {
      // Node's server accepts some characters in headers that its client refuses to send.
      reject(new ProxyError('bad-request', { cause: error }));
    } finally {
      Object.assign(request, { url, headers });
    }
    await promise;
  }

  #prepareRequests(): void {
    // After http-proxy-3 has changed the headers: it removes the chunked framing of a DELETE or OPTIONS request but still sends
    // the body, which the backend would read as the next request.
    this.#server.before('web', 'stream', (request) => {
      const attempt = this.#attempts.get(request);
      if (!attempt) throw new Error('A request without a destination');
      request.url = attempt.to.path;
      request.headers = attempt.to.headers;
      const onEnd = () => addTrailers(request, attempt.outgoing);
      request.once(
        'end',
        this.#errorBoundary.wrap(onEnd, () => attempt.outgoing?.destroy()),
      );
    });
    const onOutgoing = (outgoing: ClientRequest, request: IncomingMessage, response: ServerResponse) => {
      const attempt = this.#attempts.get(request);
      if (!attempt) return;
      attempt.outgoing = outgoing;
      limitAnswer(outgoing);
      relayInterim(outgoing, response, { view: attempt.to.view, errorBoundary: this.#errorBoundary });
      // http-proxy-3 drops the question mark of an empty query.
      outgoing.path = attempt.to.path;
      // An invalid answer, such as an upgrade that was not requested, ends the connection without an error.
      outgoing.once('close', () => {
        if (!attempt.answered) attempt.reject(unreachableError(new Error('The connection ended without an answer')));
      });
    };
    this.#server.on(
      'proxyReq',
      this.#errorBoundary.wrap(onOutgoing, (outgoing) => outgoing.destroy()),
    );
  }

  #handleAnswers(): void {
    const onAnswer = (incoming: IncomingMessage, request: IncomingMessage, response: ServerResponse) => {
      const attempt = this.#attempts.get(request);
      if (!attempt) throw new Error('An answer without a request');
      attempt.answered = true;
      try {
        relay(incoming, response, { view: attempt.to.view, errorBoundary: this.#errorBoundary });
        attempt.resolve();
      } catch (error) {
        incoming.destroy();
        attempt.reject(unreachableError(error));
      }
    };
    const cut = (incoming: IncomingMessage, _request: IncomingMessage, response: ServerResponse) => {
      incoming.destroy();
      response.destroy();
    };
    this.#server.on('proxyRes', this.#errorBoundary.wrap(onAnswer, cut));
    // The client has disconnected.
    this.#server.on('econnreset', (_error, request) => this.#cancel(request));
  }

  #cancel(request: IncomingMessage): void {
    const attempt = this.#attempts.get(request);
    attempt?.outgoing?.destroy();
    attempt?.resolve();
  }

  #wasDeadConnection(request: IncomingMessage, error: unknown): boolean {
    const attempt = this.#attempts.get(request);
    const cause = error instanceof ProxyError ? (error.cause as NodeJS.ErrnoException) : undefined;
    return attempt?.outgoing?.reusedSocket === true && !attempt.answered && closedWhileIdle.has(cause?.code);
  }
}

function addTrailers(request: IncomingMessage, outgoing: ClientRequest | undefined): void {
  const trailers = forwardedTrailers(request.rawTrailers);
  if (trailers.length === 0 || !outgoing?.chunkedEncoding || outgoing.destroyed) return;
  outgoing.addTrailers(trailers);
}
