/** One listener of a process. Without the settings, so that a thread does not have to load them. */
import type { ServerOptions } from 'node:http';
import { newGatedServer } from '../../core/http/gated-server.ts';
import type { GatedServer, GateTls } from '../../core/http/gated-server.ts';
import { listen } from '../../core/http/listener.ts';
import type { ListenOptions } from '../../core/http/listener.ts';
import type { SecureContexts } from '../../core/tls/secure-contexts.ts';
import { listenProblem } from './listen-problem.ts';
import type { ListenPlace } from './listen-problem.ts';

/** One listener. Disposing it stops listening, lets open requests finish for a while, then closes the remaining connections. */
export interface Listener extends GatedServer, AsyncDisposable {
  readonly hostPort: string;
}

/** How long closing waits for open requests, whether other threads listen on the port, too, TLS, and options of the server. */
export type ListenerOptions = Pick<ListenOptions, 'drainMs' | 'reusePort'> &
  ServerOptions & { readonly tls?: ListenerTls | undefined };

/** TLS of a listener. */
export interface ListenerTls {
  readonly contexts: SecureContexts;
  /** Whether clients may choose HTTP/2. */
  readonly http2: boolean;
  readonly hstsSeconds?: number | undefined;
}

/** Opens a listener. Throws `ConfigError` with the setting to change if that is not possible. */
export async function openListener(
  place: ListenPlace,
  { drainMs, reusePort = false, tls, ...options }: ListenerOptions = {},
): Promise<Listener> {
  const gate = newGatedServer(options, tls && (await gateTls(tls)));
  const { server, further } = gate;
  const bound = await listen(server, {
    ...place,
    reusePort,
    further,
    ...(drainMs !== undefined && { drainMs }),
  }).catch(async (error: unknown) => {
    throw await listenProblem(error, place);
  });
  return {
    ...gate,
    hostPort: hostPort(place.host, bound.port),
    [Symbol.asyncDispose]: () => bound[Symbol.asyncDispose](),
  };
}

async function gateTls({ contexts, http2, hstsSeconds }: ListenerTls): Promise<GateTls> {
  if (!http2) return { contexts, hstsSeconds };
  const { Http2Connections } = await import('../../core/http/http2/http2-connections.ts');
  return { contexts, hstsSeconds, http2: Http2Connections };
}

/** Host and port as in a URL. */
export function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
