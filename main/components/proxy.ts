import { randomBytes } from 'node:crypto';
import { openProxy } from '../../proxy/index.ts';
import type { Proxy } from '../../proxy/index.ts';
import type { ThreadDeps } from '../drivers.ts';
import type { Roles } from '../config/roles.ts';

/** Opens the proxy from the shared dependencies and the configuration. */
export async function startProxy(deps: ThreadDeps, roles: Roles, apiUrl: string): Promise<Proxy> {
  const { config, nodeName } = deps;
  return await openProxy({
    ...deps,
    // Two proxies with the same ID would overwrite each other's heartbeat.
    id: `${nodeName}-${randomBytes(4).toString('hex')}`,
    log: deps.log.child({ component: 'proxy' }),
    startTimeoutMs: (config.startTimeoutSeconds + config.pullTimeoutSeconds) * 1000,
    accessLogPercent: config.accessLogPercent,
    hold: { ms: config.holdSeconds * 1000, requests: config.maxHeldRequests },
    behindLoadBalancer: config.behindLoadBalancer,
    webSocketPingMs: config.webSocketPingSeconds * 1000,
    drain: { noticeMs: config.drainNoticeSeconds * 1000, deadlineMs: config.drainSeconds * 1000 },
    // If the API runs in another process, only the configuration has the address at which browsers reach it.
    ...((roles.has('api') || config.apiUrl !== undefined) && { apiUrl }),
    ...(config.sessionDomain !== undefined && { sessionDomain: config.sessionDomain }),
    // The proxy connects to backends of this node directly, and to all others through the gateway of their node.
    ...(roles.has('worker') && { localNode: nodeName }),
  });
}
