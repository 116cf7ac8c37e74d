import { githubIssuer } from '../../contract/trust.ts';
import { openApi } from '../../api/index.ts';
import type { ApiComponent } from '../../api/index.ts';
import { PasswordHashes, recommendedCosts } from '../../core/secret/password-hash.ts';
import type { Queue } from '../../core/queue/queue.ts';
import { purgeRepository } from '../../registry/index.ts';
import type { ImageArchives } from '../../registry/index.ts';
import type { PlatformUrls } from '../process/listeners.ts';
import type { ComponentDeps } from '../drivers.ts';
import { mountFolder } from '../process/mount-folder.ts';
import type { WorkerSupervisor } from '../process/worker-supervisor.ts';

interface ApiParts {
  /** The worker of this process, if this process has that role. */
  readonly worker: WorkerSupervisor | undefined;
  readonly queue: Queue;
  readonly urls: PlatformUrls;
  readonly archives: ImageArchives | undefined;
}

/** Opens the API from the shared dependencies and the configuration. */
export async function startApi(
  deps: ComponentDeps,
  { worker, queue, urls, archives }: ApiParts,
): Promise<ApiComponent> {
  const { config } = deps;
  return await openApi({
    ...deps,
    queue,
    passwords: new PasswordHashes(recommendedCosts),
    behindLoadBalancer: config.behindLoadBalancer,
    invalidTokensPerMinute: config.invalidTokensPerMinute,
    oidcIssuers: config.oidcIssuers.length > 0 ? config.oidcIssuers : [githubIssuer],
    accountLimits: {
      connectsPerSecond: config.accountConnectsPerSecond,
      runningBackends: config.accountRunningBackends,
    },
    log: deps.log.child({ component: 'api' }),
    archives,
    purgeRepository: (repository, before) => purgeRepository(deps.store, repository, before),
    ownNode: () => (worker?.isOpen ? deps.nodeName : undefined),
    urls: { api: urls.api, proxy: urls.proxy, sessions: urls.sessions, registryHost: urls.registry },
    rules: {
      defaultMaxIdleSeconds: config.defaultMaxIdleSeconds,
      maxIdleSecondsLimit: config.maxIdleSecondsLimit,
      ...(config.defaultLifetimeSeconds > 0 && { defaultLifetimeSeconds: config.defaultLifetimeSeconds }),
      lifetimeSecondsLimit: config.lifetimeSecondsLimit,
      memoryBytesLimit: config.memoryBytesLimit,
      urlForm: config.urlForm ?? (urls.sessions === undefined ? 'path' : 'host'),
      mountsEnabled: mountFolder(deps) !== undefined,
      defaultCluster: config.cluster,
      schedulingTimeoutSeconds: config.startTimeoutSeconds,
      imageLeaseSeconds: config.collectLeaseSeconds,
      prefetchEnabled: config.prefetch,
      backendHistorySeconds: config.backendHistorySeconds,
      auditDays: config.auditDays,
    },
  });
}
