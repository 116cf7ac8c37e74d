/** The proxy with its listener, in the main thread or in a thread of its own. */
import type { SecureContexts } from '../../core/tls/secure-contexts.ts';
import type { Proxy } from '../../proxy/index.ts';
import { startProxy } from '../components/proxy.ts';
import type { Roles } from '../config/roles.ts';
import type { ThreadDeps } from '../drivers.ts';
import { together } from '../process/closing.ts';
import { collectWithoutHelpers } from '../process/heap.ts';
import type { ListenPlace } from '../process/listen-problem.ts';
import { openListener } from '../process/listener.ts';

/** A proxy that serves. */
export interface ServingProxy extends AsyncDisposable {
  /** Where it listens. */
  readonly hostPort: string;
  readonly handlers: Proxy;
}

export interface ServeProxyOptions {
  /** The roles of the process. */
  readonly roles: Roles;
  readonly apiUrl: string;
  readonly place: ListenPlace;
  /** Whether other threads listen on the same port. */
  readonly reusePort?: boolean;
  /** The certificates, if the proxy speaks TLS. */
  readonly contexts?: SecureContexts | undefined;
}

/** As much as other proxies accept: applications put sessions into cookies, and states into URLs. */
const headBytes = 64 * 1024;

/** Throws `ConfigError` with the setting to change if the proxy cannot listen. */
export async function serveProxy(deps: ThreadDeps, options: ServeProxyOptions): Promise<ServingProxy> {
  await using opening = new AsyncDisposableStack();
  collectWithoutHelpers();
  const { config } = deps;
  const { roles, apiUrl, place, reusePort = false, contexts } = options;
  // The proxy refuses requests without a host itself, and handles nothing that follows on their connection.
  const server = {
    requireHostHeader: false,
    maxHeaderSize: headBytes,
    drainMs: config.drainSeconds * 1000,
    reusePort,
    tls: contexts && { contexts, http2: true },
  };
  const listener = opening.use(await openListener(place, server));
  const proxy = opening.use(await startProxy(deps, roles, apiUrl));
  listener.open(proxy);
  const owned = new AsyncDisposableStack();
  owned.use(opening.move());
  // The port is closed first: clients that the WebSockets ask to connect again must reach another proxy.
  owned.use(together(proxy, listener));
  let closing: Promise<void> | undefined;
  return {
    hostPort: listener.hostPort,
    handlers: proxy,
    [Symbol.asyncDispose]: () => (closing ??= owned.disposeAsync()),
  };
}
