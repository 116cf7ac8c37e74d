/** The composition root: opens drivers, listeners and components in order, and closes them in order. */
import { systemClock } from '../core/clock/system-clock.ts';
import { operationsHandler } from '../core/http/operations.ts';
import type { ReadinessChecks } from '../core/http/operations.ts';
import type { Log } from '../core/log/log.ts';
import { openMetrics } from '../core/metrics/metrics.ts';
import type { Queue } from '../core/queue/queue.ts';
import { failuresIn, together } from './process/close.ts';
import type { Config } from './config/config.ts';
import { openListeners } from './process/listeners.ts';
import type { PlatformUrls } from './process/listeners.ts';
import { ensureFirstAccount } from './process/first-account.ts';
import type { FirstAccount } from './process/first-account.ts';
import { openDrivers, openQueue } from './drivers.ts';
import type { ComponentDeps } from './drivers.ts';
import type { WorkerSupervisor, WorkerState } from './process/worker-supervisor.ts';
import { readOperationsToken } from './process/operations-token.ts';
import { allRoles, assertShared, doubtfulSharing } from './config/roles.ts';
import type { Roles } from './config/roles.ts';
import { registryTasks } from './commands/registry-tasks.ts';
import { surviveStrayErrors } from './process/stray-errors.ts';

/** Loaded by the processes that have them: the others would lose megabytes to each, and a moment at their start. */
const components = {
  registry: async () => await import('./components/registry.ts'),
  api: async () => await import('./components/api.ts'),
  worker: async () => await import('./components/worker.ts'),
  proxy: async () => await import('./components/proxy.ts'),
};

/**
 * A running platform, or the part of one that this process is. Disposing it shuts it down in order, whatever fails: that is
 * logged, and thrown at the end. Backends run on.
 */
export interface Platform extends AsyncDisposable {
  readonly urls: PlatformUrls;
  /** The account that was made at the first start; only where the API is. */
  readonly account: FirstAccount | undefined;
  /** How the worker began; only where one is wanted. */
  readonly worker: WorkerState | undefined;
}

/** A platform whose every component is in this process. */
export interface WholePlatform extends Platform {
  readonly account: FirstAccount;
  readonly worker: WorkerState;
}

/** Opens every component in this process. Throws as `openPlatform`. */
export async function openWholePlatform(options: { config: Config; log: Log }): Promise<WholePlatform> {
  const platform = await openPlatform({ ...options, roles: allRoles });
  const { account, worker } = platform;
  if (!account || !worker) throw new Error('A component is missing');
  return { ...platform, account, worker };
}

/**
 * Opens the components of some roles in this process. Throws `ConfigError` when they could not meet the components of other processes and
 * when a port is taken, and `StoreError` with code `locked` when another process holds the data folder.
 */
export async function openPlatform(options: { config: Config; log: Log; roles: Roles }): Promise<Platform> {
  const { config, log, roles } = options;
  assertShared(config, roles);
  const doubt = doubtfulSharing(config, roles);
  if (doubt !== undefined) log.warn(doubt);
  const token = await readOperationsToken(config.operationsTokenFile);
  await using opening = new AsyncDisposableStack();
  const metrics = openMetrics();
  opening.use(surviveStrayErrors({ clock: systemClock, log, metrics }));
  const deps = await openDrivers({ config, log, roles, metrics }, opening);
  const listeners = await openListeners(config, roles, opening);
  const { urls } = listeners;
  const account = roles.has('api') ? await ensureFirstAccount(deps.store, config.account, deps.dataFolder) : undefined;
  const registry = listeners.registry && opening.use((await components.registry()).startRegistry(deps));
  if (registry) listeners.registry?.open(registry);
  const proxy = listeners.proxy && opening.use(await (await components.proxy()).startProxy(deps, roles));
  if (proxy) listeners.proxy?.open(proxy);
  const queue = roles.has('api') || roles.has('worker') ? opening.use(await openQueue(deps)) : undefined;
  // The worker adopts what runs before anybody can ask for it anew.
  const worker =
    queue && roles.has('worker')
      ? opening.use(await (await components.worker()).startWorker(deps, { queue, registryHost: urls.registry }))
      : undefined;
  const archives = listeners.api && opening.use((await components.registry()).startImageArchives(deps, urls, registry));
  const api =
    queue &&
    listeners.api &&
    opening.use(await (await components.api()).startApi(deps, { worker, queue, urls, archives }));
  if (api) listeners.api?.open(api);
  const tasks = registryTasks(registry, deps.secret);
  const checks = readinessChecks(deps, { roles, queue, worker });
  const operations = {
    metrics: deps.metrics,
    checks,
    tasks,
    host: config.operationsHost,
    ...(token !== undefined && { token }),
  };
  listeners.operations.open({ handle: operationsHandler(operations) });

  // Closed from the last to the first, each though those after it failed. The rest, in reverse: worker, registry, their listeners,
  // queue and bus, the store.
  const owned = new AsyncDisposableStack();
  owned.use(opening.move());
  owned.use(together(listeners.api, listeners.proxy));
  owned.use(together(api, proxy));
  owned.defer(() => listeners.api?.close());
  owned.use(tasks);
  const close = async () => {
    try {
      await owned.disposeAsync();
    } catch (error) {
      // One that is closed twice fails twice with the same error.
      const failures = new Set(failuresIn(error));
      for (const failure of failures) log.error({ err: failure }, 'A component did not close');
      throw new AggregateError(failures, 'Not all components closed', { cause: error });
    }
  };
  let closing: Promise<void> | undefined;
  return { urls, account, worker: worker?.atStart, [Symbol.asyncDispose]: () => (closing ??= close()) };
}

/** What must hold for this process to do its part. */
function readinessChecks(
  deps: ComponentDeps,
  { roles, queue, worker }: { roles: Roles; queue: Queue | undefined; worker: WorkerSupervisor | undefined },
): ReadinessChecks {
  return {
    store: () => deps.store.ping(),
    ...(keepsFiles(deps.config, roles) && { disk: () => deps.reserve.require() }),
    bus: () => deps.bus.ping(),
    ...(roles.has('registry') && { blobs: () => deps.blobs.ping() }),
    ...(queue && { queue: () => queue.ping() }),
    ...(worker && { worker: () => worker.ping() }),
  };
}

/** Whether what must be stored stands on the disk of this process. */
function keepsFiles({ store, blobs }: Config, roles: Roles): boolean {
  return store === 'sqlite' || (blobs === 'files' && roles.has('registry'));
}
