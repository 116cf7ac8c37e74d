/** The proxy: turns `/<token>/…` and `<label>.<session domain>` into a request to a backend, and counts the open connections of each backend. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { backendChanged, routeMoved } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { NewConnection } from '../core/http/gated-server.ts';
import { ErrorBoundary } from '../core/log/error-boundary.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import type { Store } from '../core/store/store.ts';
import { BackendTraffic } from './backend-traffic.ts';
import { Connections } from './connections.ts';
import { Dialer } from './forward/dial.ts';
import { Forwarder } from './forward/forwarder.ts';
import { Holds } from './hold.ts';
import type { HoldLimits } from './hold.ts';
import { Lookup } from './lookup.ts';
import { ProxyMetrics } from './metrics.ts';
import { MissedChanges } from './missed-changes.ts';
import { PlainProxy } from './plain/plain-proxy.ts';
import { isUpgradeWanted, plainContext, upgradeContext } from './request-context.ts';
import { RequestHandler } from './request-handler.ts';
import type { DrainTimes } from './request-handler.ts';

/** The dependencies of the proxy. */
export interface ProxyDeps {
  /** Identifies this proxy in its reports of open connections. No other process may use the same ID. */
  readonly id: string;
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Authenticates this process to the gateways of nodes. */
  readonly secret: PlatformSecret;
  /**
   * The node whose backends this process reaches by their address. It reaches all others through the gateway of their node.
   * Default: none, but nodes without a gateway are assumed to be on this machine.
   */
  readonly localNode?: string;
  /** The value of `x-verified-secret` for a connection token. */
  readonly secretFor: (connectionToken: string) => string;
  /** How long a backend may take from its creation to `ready`. */
  readonly startTimeoutMs: number;
  readonly hold: HoldLimits;
  /** The percentage of requests that are logged. Failed requests are always logged. */
  readonly accessLogPercent: number;
  /** The URL of the API, whose readiness pages browsers see while a backend starts. Absent: they wait as other clients do. */
  readonly apiUrl?: string;
  /**
   * Whether a load balancer in front sets `x-forwarded-for`, `-proto` and `-host`, so that they are kept. Default: clients connect
   * directly, and these headers are dropped.
   */
  readonly behindLoadBalancer?: boolean;
  /** The parent domain of the hosts of sessions, in lower case. Absent: sessions have only the path form. */
  readonly sessionDomain?: string;
  /** After this much silence, the client of a WebSocket gets a Ping, which it must answer within the same time. 0: never. */
  readonly webSocketPingMs: number;
  /** How long open requests and WebSockets may take to end after the proxy is disposed. */
  readonly drain: DrainTimes;
}

export interface Proxy extends AsyncDisposable {
  /** Handles a server's new connections. Passes requests that are not plain to the server, and so to the other handlers. */
  readonly accept: (connection: NewConnection) => void;
  /** For a server's `request` event. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** For a server's `upgrade` event. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** For a server's `shouldUpgradeCallback`. All other requests are handled as plain ones. */
  readonly shouldUpgrade: (request: IncomingMessage) => boolean;
}

/**
 * Opens the proxy. Disposing it answers held and new requests with 503, waits for open requests, closes WebSockets,
 * destroys the remaining connections, and reports that nothing is open.
 */
export async function openProxy(deps: ProxyDeps): Promise<Proxy> {
  await using opened = new AsyncDisposableStack();
  const { bus, log, store } = deps;
  const errorBoundary = new ErrorBoundary(log);
  const clock = errorBoundary.clock(deps.clock);
  const connections = opened.use(new Connections({ id: deps.id, bus, clock, log }));
  const openConnections = () => connections.total;
  const open = { openConnections: () => connections.counts(), plainRequests: () => plain.requests() };
  const traffic = opened.use(new BackendTraffic({ ...deps, clock, ...open }));
  const serviceOf = (backend: string) => lookup.serviceOf(backend);
  const metrics = opened.use(new ProxyMetrics({ ...deps, errorBoundary, clock, openConnections, serviceOf, traffic }));
  const drop = (backend: string) => {
    forwarder.drop(backend);
    plain.drop(backend);
  };
  const lookup = new Lookup({ store, clock, onGone: drop });
  opened.use(new MissedChanges({ store, clock, log, lookup }));
  const dialer = new Dialer({ localNode: deps.localNode, secret: deps.secret, clock, log, lookup });
  const forwarder = opened.use(new Forwarder({ clock, dialer, errorBoundary, webSocketPingMs: deps.webSocketPingMs }));
  const { secretFor, behindLoadBalancer = false, sessionDomain, apiUrl } = deps;
  const settings = { secretFor, behindLoadBalancer, sessionDomain };
  const shared = { clock, errorBoundary, lookup, connections, metrics };
  const plain: PlainProxy = opened.use(new PlainProxy({ ...shared, ...settings, dialer }));
  const holds = new Holds({ lookup, clock, startTimeoutMs: deps.startTimeoutMs, limits: deps.hold });
  const handler = new RequestHandler({ ...shared, ...settings, holds, forwarder, apiUrl });
  const onChange = errorBoundary.wrap(({ backend, status }: { backend: string; status: string }) => {
    lookup.forget(backend);
    if (status === 'terminated') drop(backend);
    holds.wake(backend);
  });
  opened.use(await bus.subscribe(backendChanged, onChange));
  opened.use(
    await bus.subscribe(
      routeMoved,
      errorBoundary.wrap(({ route }) => lookup.forgetRoute(route)),
    ),
  );
  opened.defer(async () => {
    await Promise.all([handler.drain(deps.drain), plain.drain(deps.drain.deadlineMs)]);
  });
  const resources = opened.move();
  let closing: Promise<void> | undefined;
  return {
    accept: errorBoundary.wrap(
      (connection: NewConnection) => plain.accept(connection),
      ({ socket }) => socket.destroy(),
    ),
    handle: errorBoundary.wrap(
      (request: IncomingMessage, response: ServerResponse) => handler.handle(plainContext(request, response)),
      ({ socket }) => socket.destroy(),
    ),
    upgrade: errorBoundary.wrap(
      (request: IncomingMessage, socket: Duplex, head: Buffer) =>
        handler.handle(upgradeContext(request, socket, head, errorBoundary)),
      (_request, socket) => socket.destroy(),
    ),
    shouldUpgrade: isUpgradeWanted,
    [Symbol.asyncDispose]: () => (closing ??= resources.disposeAsync()),
  };
}
