/** A listener of a process. Does not import the settings, so that threads do not load them. */
import type { ServerOptions } from 'node:http';
import { newGatedServer } from '../../core/http/gated-server.ts';
import type { GatedServer, GateTls } from '../../core/http/gated-server.ts';
import { listen } from '../../core/http/listener.ts';
import type { ListenOptions } from '../../core/http/listener.ts';
import type { SecureContexts } from '../../core/tls/secure-contexts.ts';
import { listenProblem } from './listen-problem.ts';
import type { ListenAddress } from './listen-problem.ts';

/** A listener. Disposing it stops listening, gives open requests time to finish, then closes the remaining connections. */
export interface Listener extends GatedServer, AsyncDisposable {
  readonly hostPort: string;
}

export type ListenerOptions = Pick<ListenOptions, 'drainMs' | 'reusePort'> &
  ServerOptions & { readonly tls?: ListenerTls | undefined };

/** TLS of a listener. */
export interface ListenerTls {
  readonly contexts: SecureContexts;
  /** Whether clients may choose HTTP/2. */
  readonly http2: boolean;
  readonly hstsSeconds?: number | undefined;
}

/** Opens a listener. Throws `ConfigError` with the setting to change if it cannot listen. */
export async function openListener(
  address: ListenAddress,
  { drainMs, reusePort = false, tls, ...options }: ListenerOptions = {},
): Promise<Listener> {
  const gate = newGatedServer(options, tls && (await gateTls(tls)));
  const { server, otherConnections } = gate;
  const bound = await listen(server, {
    ...address,
    reusePort,
    otherConnections,
    ...(drainMs !== undefined && { drainMs }),
  }).catch(async (error: unknown) => {
    throw await listenProblem(error, address);
  });
  return {
    ...gate,
    hostPort: hostPort(address.host, bound.port),
    [Symbol.asyncDispose]: () => bound[Symbol.asyncDispose](),
  };
}

async function gateTls({ contexts, http2, hstsSeconds }: ListenerTls): Promise<GateTls> {
  if (!http2) return { contexts, hstsSeconds };
  const { Http2Connections } = await import('../../core/http/http2/http2-connections.ts');
  return { contexts, hstsSeconds, http2: Http2Connections };
}

/** The wildcard addresses, and the address at which a process that listens on them is reached. */
const reachableAt: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** The names of the loopback interface. */
export const loopbackHosts: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost']);

/** Whether this machine reaches a listener as `localhost`. */
export function isReachedAsLocalhost(host: string): boolean {
  return loopbackHosts.has(reachableAt[host] ?? host);
}

/** Host and port, as in a URL, at which this machine reaches a listener. */
export function reachableHostPort(host: string, port: number): string {
  return hostPort(reachableAt[host] ?? host, port);
}

/** Host and port as in a URL. */
export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
