/** The way of a request through the proxy: whose is it, may it pass, is anyone there, go. */
import { settledWithin } from '../core/async/with-timeout.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { LastCatch } from '../core/log/last-catch.ts';
import type { Connections } from './connections.ts';
import { parseConnectionUrl, redirectOf } from './connection-url.ts';
import { answerError } from './error-answer.ts';
import type { Exchange } from './exchange.ts';
import { asProxyFailure, goneFailure, ProxyFailure } from './failure.ts';
import type { Destination, Forwarder } from './forward/forwarder.ts';
import { watchLeaving } from './forward/watch-leaving.ts';
import type { Holds } from './hold.ts';
import type { Address, Lookup } from './lookup.ts';
import type { Observer } from './observe.ts';
import { requestHeaders } from './request-headers.ts';
import { isUpgradeWanted } from './upgrade-request.ts';

export interface VisitDeps {
  readonly clock: Clock;
  readonly caught: LastCatch;
  readonly lookup: Lookup;
  readonly holds: Holds;
  readonly connections: Connections;
  readonly forwarder: Forwarder;
  readonly observer: Observer;
  readonly secretFor: (connectionToken: string) => string;
  readonly behindLoadBalancer: boolean;
}

/** Requests on their way through the proxy. */
export class Visits {
  readonly #deps: VisitDeps;
  readonly #draining = new AbortController();
  readonly #plain = new Set<Exchange>();

  constructor(deps: VisitDeps) {
    this.#deps = deps;
  }

  /** Serves an exchange. Never throws: what goes wrong is answered. */
  async serve(exchange: Exchange): Promise<void> {
    this.#deps.observer.follow(exchange);
    if (!exchange.upgrade) this.#keep(exchange);
    try {
      this.#draining.signal.throwIfAborted();
      await this.#pass(exchange);
    } catch (error) {
      if (!exchange.closed.aborted) this.#refuse(exchange, asProxyFailure(error));
    }
  }

  /** Takes nothing new, ends all holds, waits a while for open requests, and cuts what is left, upgraded connections included. */
  async drain(limitMs: number): Promise<void> {
    this.#draining.abort(new ProxyFailure('unavailable'));
    const limit = { clock: this.#deps.clock, ms: limitMs };
    await settledWithin(limit, async () => await Promise.all([...this.#plain].map(ended)));
    for (const { response } of this.#plain) response.destroy();
    this.#deps.forwarder.cutUpgraded();
  }

  async #pass(exchange: Exchange): Promise<void> {
    const { request } = exchange;
    const url = parseConnectionUrl(request.url ?? '');
    if (!url) throw new ProxyFailure('not-found');
    if (exchange.upgrade?.isEarly || (exchange.upgrade && !isUpgradeWanted(request)))
      throw new ProxyFailure('bad-request');
    const location = redirectOf(url);
    if (location !== undefined) {
      redirect(exchange, location);
      return;
    }
    const { lookup, secretFor, behindLoadBalancer } = this.#deps;
    const route = await lookup.route(url.token);
    if (!route) throw new ProxyFailure('gone');
    this.#count(exchange, route.backend);
    const verified = { route, token: url.token, secret: secretFor(url.token), behindLoadBalancer };
    const headers = requestHeaders(request, verified);
    const address = await this.#reach(exchange, route.backend);
    await this.#forward(exchange, {
      backend: route.backend,
      address,
      prefix: `/${url.token}`,
      path: url.rest,
      headers,
    });
  }

  #count(exchange: Exchange, backend: string): void {
    exchange.backend = backend;
    if (exchange.closed.aborted) return;
    const { connections, caught } = this.#deps;
    const open = connections.open(backend);
    exchange.closed.addEventListener(
      'abort',
      caught.around(() => open[Symbol.dispose]()),
    );
  }

  async #reach(exchange: Exchange, backend: string): Promise<Address> {
    const { lookup, holds, observer, clock } = this.#deps;
    const found = await lookup.whereabouts(backend);
    if (found.state === 'reachable') return found.address;
    if (found.state === 'gone') throw goneFailure(found.wasReady);
    const sinceMs = clock.now().getTime();
    using _watch = exchange.upgrade && watchLeaving(exchange.upgrade.socket);
    const signal = AbortSignal.any([exchange.closed, this.#draining.signal]);
    try {
      return await holds.untilReachable(backend, found.createdAt, signal);
    } finally {
      observer.held(sinceMs);
    }
  }

  async #forward(exchange: Exchange, to: Destination): Promise<void> {
    const { request, response, upgrade, closed } = exchange;
    const { forwarder, lookup } = this.#deps;
    if (closed.aborted) return;
    try {
      if (upgrade) await forwarder.upgrade(request, { ...upgrade, response }, to);
      else await forwarder.web(request, response, to);
    } catch (error) {
      if (asProxyFailure(error).code !== 'backend-unreachable') throw error;
      // It may have ended just now, with the news still on its way.
      lookup.forget(to.backend);
      const found = await lookup.refresh(to.backend);
      throw found.state === 'gone' ? goneFailure(found.wasReady, { cause: error }) : error;
    }
  }

  #refuse(exchange: Exchange, { code, cause }: ProxyFailure): void {
    exchange.error = code;
    this.#deps.observer.failed(exchange, code, cause);
    answerError(exchange.request, exchange.response, code);
  }

  #keep(exchange: Exchange): void {
    this.#plain.add(exchange);
    exchange.closed.addEventListener('abort', () => this.#plain.delete(exchange));
  }
}

function ended({ closed }: Exchange): Promise<void> {
  return new Promise((resolve) => closed.addEventListener('abort', () => resolve()));
}

/** Keeps the method, and is not remembered: the URL works no longer than its session. */
function redirect({ request, response }: Exchange, location: string): void {
  response.writeHead(307, {
    location,
    'content-length': 0,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    ...(!request.complete && { connection: 'close' }),
  });
  response.end();
}
