/** Handles a request: finds its route, waits until its backend is ready, and forwards it. */
import type { Route } from '../model/route.ts';
import { settledWithin } from '../core/async/with-timeout.ts';
import type { Clock } from '../core/clock/clock.ts';
import { normalizeTarget } from '../core/http/absolute-form.ts';
import { requestId } from '../core/http/request-id.ts';
import type { ErrorBoundary } from '../core/log/error-boundary.ts';
import type { Connections, OpenConnection } from './connections.ts';
import { hasBearerToken } from './bearer-token.ts';
import { parseConnectionUrl, redirectOf } from './connection-url.ts';
import type { ConnectionUrl } from './connection-url.ts';
import { answerError, asProxyError, goneError, isGone, ProxyError } from './errors.ts';
import type { Destination, Forwarder } from './forward/forwarder.ts';
import type { Holds } from './hold.ts';
import { nodeOf } from './lookup.ts';
import type { Address, BackendLocation, Lookup } from './lookup.ts';
import type { ProxyMetrics } from './metrics.ts';
import { isNavigation, readinessPageAfterMs, readinessUrl } from './readiness-page.ts';
import { redirect } from './redirect.ts';
import { isUpgradeWanted, untilClosed } from './request-context.ts';
import type { RequestContext } from './request-context.ts';
import { headOf, requestHeaders } from './request-headers.ts';
import { isForwardable } from './request-syntax.ts';
import { sessionView } from './session-view.ts';
import { destroyOnEnd } from './sockets.ts';
import { UpgradedConnection } from './upgraded-connection.ts';

export interface RequestHandlerDeps {
  readonly clock: Clock;
  readonly errorBoundary: ErrorBoundary;
  readonly lookup: Lookup;
  readonly holds: Holds;
  readonly connections: Connections;
  readonly forwarder: Forwarder;
  readonly metrics: ProxyMetrics;
  readonly secretFor: (connectionToken: string) => string;
  readonly behindLoadBalancer: boolean;
  readonly sessionDomain: string | undefined;
  readonly apiUrl: string | undefined;
}

/** Times from the start of a drain. */
export interface DrainTimes {
  /** When WebSockets are closed. */
  readonly noticeMs: number;
  /** When all remaining connections are destroyed. */
  readonly deadlineMs: number;
}

/** Handles requests until it is drained. */
export class RequestHandler {
  readonly #deps: RequestHandlerDeps;
  readonly #draining = new AbortController();
  readonly #open = new Set<RequestContext>();
  readonly #upgraded = new Set<UpgradedConnection>();
  /** One object for all upgraded connections. */
  readonly #upgradedDeps: ConstructorParameters<typeof UpgradedConnection>[2];

  constructor(deps: RequestHandlerDeps) {
    this.#deps = deps;
    const { connections, metrics } = deps;
    this.#upgradedDeps = { connections, metrics, onClientClosed: (upgraded) => this.#upgraded.delete(upgraded) };
  }

  /** Handles a request. Errors are answered, not thrown. */
  async handle(context: RequestContext): Promise<void> {
    const { closed, request } = context;
    await context.earlier;
    // The last answer has closed the connection. The client sends the request again on another one.
    if (closed.aborted || (context.earlier && !request.socket.writable)) return;
    this.#deps.metrics.track(context);
    this.#open.add(context);
    closed.addEventListener('abort', () => this.#open.delete(context));
    try {
      this.#draining.signal.throwIfAborted();
      await this.#pass(context);
    } catch (error) {
      if (closed.aborted) return;
      const { code, cause } = asProxyError(error);
      if (code === 'starting' && context.readinessUrl !== undefined) {
        redirect(context, 303, context.readinessUrl);
        return;
      }
      context.error = code;
      this.#deps.metrics.logError({ id: requestId(context.request), backend: context.backend }, code, cause);
      const { request, response } = context;
      answerError({ request, response, closed }, code);
    }
  }

  /**
   * Rejects new and held requests, and waits for open ones. WebSockets are closed after a notice period, in which clients can already
   * reach another proxy. Destroys the others at the deadline.
   */
  async drain({ noticeMs, deadlineMs }: DrainTimes): Promise<void> {
    const { clock, forwarder } = this.#deps;
    this.#draining.abort(new ProxyError('unavailable'));
    {
      using _notice = clock.after(noticeMs, () => forwarder.closeUpgraded());
      const limit = { clock, ms: deadlineMs };
      await settledWithin(limit, async () => {
        await Promise.all([...this.#open].map(({ closed }) => untilClosed(closed)));
        await Promise.all([...this.#upgraded].map(async (each) => await each.clientClosed()));
      });
    }
    for (const { response, upgrade } of this.#open) (upgrade?.socket ?? response).destroy();
    forwarder.destroyUpgraded();
  }

  async #pass(context: RequestContext): Promise<void> {
    const { request } = context;
    const { lookup, sessionDomain } = this.#deps;
    if (!isForwardable(request) || !normalizeTarget(request)) throw new ProxyError('bad-request');
    const url = parseConnectionUrl(request.url ?? '', { host: request.headers.host, sessionDomain });
    if (!url) throw new ProxyError('not-found');
    if (context.upgrade && (context.upgrade.isEarly || !isUpgradeWanted(request))) throw new ProxyError('bad-request');
    const redirectTo = redirectOf(url);
    if (redirectTo !== undefined) {
      redirect(context, 307, redirectTo);
      return;
    }
    let to: Destination;
    const route = await lookup.route(url.token);
    // In the host form, a session keeps its URL, and clients may request any label: an unknown label is not a session.
    if (!route) throw new ProxyError(url.form === 'host' ? 'not-found' : 'gone');
    try {
      to = await this.#reach(context, url, route);
    } catch (error) {
      const next = await this.#nextRoute(url, route, error);
      if (!next) throw error;
      to = await this.#reach(context, url, next);
    }
    await this.#forward(context, to);
  }

  /** Waits until the backend of a route is reachable. If this fails, the request no longer counts as its open connection. */
  async #reach(context: RequestContext, url: ConnectionUrl, route: Route): Promise<Destination> {
    const { request } = context;
    const { secretFor, behindLoadBalancer, apiUrl } = this.#deps;
    if (!hasBearerToken(request.headers.authorization, route)) throw new ProxyError('unauthorized');
    const { backend } = route;
    const open = this.#count(context, backend);
    if (apiUrl !== undefined && isNavigation(request)) context.readinessUrl = readinessUrl(apiUrl, backend, url);
    const limitMs = context.readinessUrl === undefined ? undefined : readinessPageAfterMs;
    const { token } = url;
    let address: Address;
    try {
      address = await this.#untilReachable(context, backend, { open, limitMs });
    } catch (error) {
      // The request may continue for hours with the next holder of the key.
      open[Symbol.dispose]();
      throw error;
    }
    const view = sessionView({ ...url, address }, request.headers, behindLoadBalancer);
    const headers = requestHeaders(headOf(request), {
      route,
      token,
      view,
      secret: secretFor(token),
      behindLoadBalancer,
    });
    return {
      backend,
      address,
      view,
      path: url.rest,
      headers,
    };
  }

  /** The route of a key whose holder has ended, if the key has another holder by now. The message about it may not have arrived yet. */
  async #nextRoute(
    { token }: ConnectionUrl,
    { backend, fencingToken }: Route,
    error: unknown,
  ): Promise<Route | undefined> {
    if (fencingToken === undefined || !isGone(error)) return undefined;
    const route = await this.#deps.lookup.refreshRoute(token);
    return route?.backend === backend ? undefined : route;
  }

  /** Counts the request as an open connection of its backend until it is closed. */
  #count(context: RequestContext, backend: string): OpenConnection {
    context.backend = backend;
    const { connections, errorBoundary } = this.#deps;
    const open = connections.open(backend);
    const close = errorBoundary.wrap(() => open[Symbol.dispose]());
    if (context.closed.aborted) close();
    else context.closed.addEventListener('abort', close);
    return open;
  }

  async #untilReachable(
    { upgrade, closed }: RequestContext,
    backend: string,
    { open, limitMs }: { open: OpenConnection; limitMs: number | undefined },
  ): Promise<Address> {
    const { lookup, holds, metrics, clock } = this.#deps;
    const found = await lookup.location(backend);
    open.at(nodeOf(found));
    if (found.state === 'reachable') return found.address;
    if (found.state === 'gone') throw goneError(found.wasReady);
    const sinceMs = clock.now().getTime();
    using _watch = upgrade && destroyOnEnd(upgrade.socket);
    try {
      const signal = AbortSignal.any([closed, this.#draining.signal]);
      const onFound = (location: BackendLocation) => open.at(nodeOf(location));
      return await holds.untilReachable(backend, { createdAt: found.createdAt, signal, onFound, limitMs });
    } finally {
      metrics.observeHold(sinceMs);
    }
  }

  async #forward(context: RequestContext, to: Destination): Promise<void> {
    const { request, response, upgrade, closed } = context;
    const { forwarder, lookup } = this.#deps;
    if (closed.aborted) return;
    try {
      if (upgrade) {
        const onJoined = () => this.#follow(context, to.backend);
        await forwarder.upgrade(request, { ...upgrade, response, onJoined }, to);
      } else await forwarder.web(request, response, to);
    } catch (error) {
      throw await lookup.explain(to.backend, asProxyError(error));
    }
  }

  /** Follows an upgraded connection, whose request has ended. */
  #follow(context: RequestContext, backend: string): UpgradedConnection {
    const upgraded = new UpgradedConnection(context, backend, this.#upgradedDeps);
    this.#upgraded.add(upgraded);
    context.isUpgraded = true;
    context.upgrade?.leave();
    return upgraded;
  }
}
