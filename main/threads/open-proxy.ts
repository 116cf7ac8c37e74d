/** Opens the proxy of a process, in its main thread or in separate threads. */
import type { ServerHandlers } from '../../core/http/gated-server.ts';
import type { Roles } from '../config/roles.ts';
import type { ComponentDeps } from '../drivers.ts';
import { addressOf } from '../process/listeners.ts';
import type { Tls } from '../process/tls.ts';
import { joinMetrics } from './joined-metrics.ts';
import type { MetricsText } from './joined-metrics.ts';
import { startProxyThreads } from './proxy-threads.ts';

/** The proxy of this process. */
export interface ProxyOfProcess extends AsyncDisposable {
  readonly hostPort: string;
  /** Only for a proxy in this thread. */
  readonly handlers?: ServerHandlers;
  /** Only for a proxy in separate threads. Throws an error unless all of them serve. */
  readonly ping?: () => Promise<void>;
  /** Only for a proxy in separate threads: their metrics joined with the metrics of this thread. */
  readonly metrics?: MetricsText;
}

export interface ProxyOptions {
  /** The roles of the process. */
  readonly roles: Roles;
  readonly apiUrl: string;
  readonly tls: Tls | undefined;
}

/** Opens the proxy in separate threads, or in this thread if no other component runs here or `BERTH_PROXY_THREADS` is 0. */
export async function openProxy(deps: ComponentDeps, { roles, apiUrl, tls }: ProxyOptions): Promise<ProxyOfProcess> {
  const { proxyThreads } = deps.config;
  const address = addressOf(deps.config, 'host', 'proxyPort');
  const isAlone = roles.size === 1 && proxyThreads === 1;
  if (proxyThreads === 0 || isAlone) {
    const { serveProxy } = await import('./serve-proxy.ts');
    return await serveProxy(deps, { roles, apiUrl, address, contexts: tls?.contexts });
  }
  const threads = await startProxyThreads(deps, {
    roles: [...roles],
    apiUrl,
    address,
    count: proxyThreads,
    certificates: tls?.files,
  });
  return { ...threads, metrics: joinMetrics(deps.metrics, async () => await threads.metrics()) };
}
