/** Opens the proxy of a process: in its main thread, or in threads of its own. */
import type { ServerHandlers } from '../../core/http/gated-server.ts';
import type { Roles } from '../config/roles.ts';
import type { ComponentDeps } from '../drivers.ts';
import { placeOf } from '../process/listeners.ts';
import type { Tls } from '../process/tls.ts';
import { joinMetrics } from './joined-metrics.ts';
import type { MetricsText } from './joined-metrics.ts';
import { startProxyThreads } from './proxy-threads.ts';

/** The proxy of this process. */
export interface ProxyOfProcess extends AsyncDisposable {
  readonly hostPort: string;
  /** Only of a proxy in this thread. */
  readonly handlers?: ServerHandlers;
  /** Only of a proxy in threads of its own. Throws an error unless it serves. */
  readonly ping?: () => Promise<void>;
  /** The metrics of this thread with those of the proxy's own threads. */
  readonly metrics?: MetricsText;
}

export interface ProxyOptions {
  /** The roles of the process. */
  readonly roles: Roles;
  readonly apiUrl: string;
  readonly tls: Tls | undefined;
}

/** Opens the proxy in threads of its own, or in this one if it shares it with no other component or is configured to. */
export async function openProxy(deps: ComponentDeps, { roles, apiUrl, tls }: ProxyOptions): Promise<ProxyOfProcess> {
  const { proxyThreads } = deps.config;
  const place = placeOf(deps.config, 'host', 'proxyPort');
  const isAlone = roles.size === 1 && proxyThreads === 1;
  if (proxyThreads === 0 || isAlone) {
    const { serveProxy } = await import('./serve-proxy.ts');
    return await serveProxy(deps, { roles, apiUrl, place, contexts: tls?.contexts });
  }
  const threads = await startProxyThreads(deps, {
    roles: [...roles],
    apiUrl,
    place,
    count: proxyThreads,
    certificates: tls?.files,
  });
  return { ...threads, metrics: joinMetrics(deps.metrics, async () => await threads.metrics()) };
}
