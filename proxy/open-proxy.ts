/** The proxy: turns `/<token>/…` into a request to a backend, and knows who is connected. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { backendChanged } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import { LastCatch } from '../core/log/last-catch.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import type { Store } from '../core/store/store.ts';
import { Connections } from './connections.ts';
import { plainExchange, upgradeExchange } from './exchange.ts';
import { Dialer } from './forward/dial.ts';
import { generalForwarder } from './forward/general.ts';
import { Holds } from './hold.ts';
import { Lookup } from './lookup.ts';
import { Observer } from './observe.ts';
import { isUpgradeWanted } from './upgrade-request.ts';
import { Visits } from './visit.ts';

/** Everything the proxy is handed. */
export interface ProxyDeps {
  /** The name under which this proxy tells its open connections; no other process has it. */
  readonly id: string;
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** By it the gateways of nodes know this process. */
  readonly secret: PlatformSecret;
  /**
   * The node whose backends this process reaches by their address; all others it reaches through their node's gateway.
   * Default: none, but a node that has no gateway is taken for this machine.
   */
  readonly localNode?: string;
  /** The value of `x-verified-secret` for a connection token. */
  readonly secretFor: (connectionToken: string) => string;
  /** How long a backend may take from its creation to `ready`, and so the longest that a request is held. */
  readonly startTimeoutMs: number;
  /**
   * Whether a load balancer stands in front, so that what `x-forwarded-for`, `-proto` and `-host` say already is its word and
   * is kept. Default: the proxy is the edge, and what a client says there is dropped.
   */
  readonly behindLoadBalancer?: boolean;
  /** How long open requests may take to end when the proxy is disposed, in milliseconds. Default 5 s. */
  readonly drainMs?: number;
}

export interface Proxy extends AsyncDisposable {
  /** For a server's `request` event. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** For a server's `upgrade` event. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** For a server's `shouldUpgradeCallback`: what is not worth an upgrade is served as a plain request. */
  readonly shouldUpgrade: (request: IncomingMessage) => boolean;
}

/** As the listener's: enough for ordinary requests. */
const defaultDrainMs = 5_000;

/**
 * Opens the proxy. Disposing it answers what is held, and what is new, with 503, waits a while for open requests, cuts what
 * is left, upgraded connections included, and tells that nothing is open.
 */
export async function openProxy(deps: ProxyDeps): Promise<Proxy> {
  await using opened = new AsyncDisposableStack();
  const { log } = deps;
  const caught = new LastCatch(log);
  const clock = caught.clock(deps.clock);
  const connections = opened.use(new Connections({ id: deps.id, bus: deps.bus, clock, log }));
  const observer = opened.use(
    new Observer({ log, caught, clock, metrics: deps.metrics, openConnections: () => connections.total }),
  );
  const lookup = new Lookup({ store: deps.store, clock, onGone: (backend) => forwarder.drop(backend) });
  const dialer = new Dialer({ localNode: deps.localNode, secret: deps.secret, clock, log, lookup });
  const forwarder = opened.use(generalForwarder({ clock, dialer, caught }));
  const holds = new Holds({ lookup, clock, startTimeoutMs: deps.startTimeoutMs });
  const visits = new Visits({
    clock,
    caught,
    lookup,
    holds,
    connections,
    forwarder,
    observer,
    secretFor: deps.secretFor,
    behindLoadBalancer: deps.behindLoadBalancer ?? false,
  });
  opened.use(
    await deps.bus.subscribe(
      backendChanged,
      caught.around(({ backend, status }) => {
        lookup.forget(backend);
        if (status === 'terminated') forwarder.drop(backend);
        holds.wake(backend);
      }),
    ),
  );
  opened.defer(() => visits.drain(deps.drainMs ?? defaultDrainMs));
  const resources = opened.move();
  let closing: Promise<void> | undefined;
  return {
    handle: caught.around(
      (request: IncomingMessage, response: ServerResponse) => visits.serve(plainExchange(request, response)),
      ({ socket }) => socket.destroy(),
    ),
    upgrade: caught.around(
      (request: IncomingMessage, socket: Duplex, head: Buffer) =>
        visits.serve(upgradeExchange(request, socket, head, caught)),
      (_request, socket) => socket.destroy(),
    ),
    shouldUpgrade: isUpgradeWanted,
    [Symbol.asyncDispose]: () => (closing ??= resources.disposeAsync()),
  };
}
