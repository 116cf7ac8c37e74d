/** Opens the proxy with its listener, in the main thread or in a separate thread. */
import type { SecureContexts } from '../../core/tls/secure-contexts.ts';
import type { Proxy } from '../../proxy/index.ts';
import { startProxy } from '../components/proxy.ts';
import type { Roles } from '../config/roles.ts';
import type { ThreadDeps } from '../drivers.ts';
import { closingTogether } from '../process/closing.ts';
import { collectWithoutHelpers } from '../process/heap.ts';
import type { ListenAddress } from '../process/listen-problem.ts';
import { openListener } from '../process/listener.ts';

/** A proxy that accepts requests. */
export interface ServingProxy extends AsyncDisposable {
  /** Its address. */
  readonly hostPort: string;
  readonly handlers: Proxy;
}

export interface ServeProxyOptions {
  /** The roles of the process. */
  readonly roles: Roles;
  readonly apiUrl: string;
  readonly address: ListenAddress;
  /** Whether other threads listen on the same port. */
  readonly reusePort?: boolean;
  /** The certificates, if the proxy speaks TLS. */
  readonly contexts?: SecureContexts | undefined;
}

/** The limit of other proxies: applications store sessions in cookies and state in URLs. */
const headBytes = 64 * 1024;

/** Opens the proxy. Throws `ConfigError` with the setting to change if it cannot listen. */
export async function serveProxy(deps: ThreadDeps, options: ServeProxyOptions): Promise<ServingProxy> {
  await using opening = new AsyncDisposableStack();
  collectWithoutHelpers();
  const { config } = deps;
  const { roles, apiUrl, address, reusePort = false, contexts } = options;
  // The proxy refuses requests without a host itself, and handles nothing that follows on their connection.
  const server = {
    requireHostHeader: false,
    maxHeaderSize: headBytes,
    drainMs: config.drainSeconds * 1000,
    reusePort,
    tls: contexts && { contexts, http2: true },
  };
  const listener = opening.use(await openListener(address, server));
  const proxy = opening.use(await startProxy(deps, roles, apiUrl));
  listener.open(proxy);
  const owned = new AsyncDisposableStack();
  owned.use(opening.move());
  // The port is closed first: clients whose WebSockets are closed must connect to another proxy.
  owned.use(closingTogether(proxy, listener));
  let closing: Promise<void> | undefined;
  return {
    hostPort: listener.hostPort,
    handlers: proxy,
    [Symbol.asyncDispose]: () => (closing ??= owned.disposeAsync()),
  };
}
