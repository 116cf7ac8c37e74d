/** The composition root: opens drivers, listeners and components in order, and closes them in order. */
import { systemClock } from '../core/clock/system-clock.ts';
import { collectAfterMs, collectStartupGarbage } from '../core/heap/collect-start.mjs';
import { operationsHandler } from '../core/http/operations.ts';
import type { ReadinessChecks } from '../core/http/operations.ts';
import type { ServerHandlers } from '../core/http/gated-server.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Log } from '../core/log/log.ts';
import { openMetrics } from '../core/metrics/metrics.ts';
import type { Queue } from '../core/queue/queue.ts';
import { PasswordHashes, recommendedCosts } from '../core/secret/password-hash.ts';
import type { Config } from './config/config.ts';
import { openListeners, urlsOf } from './process/listeners.ts';
import type { PlatformUrls } from './process/listeners.ts';
import { ensureFirstAccount } from './process/first-account.ts';
import type { FirstAccount } from './process/first-account.ts';
import { ensureFirstAdmin } from './process/first-admin.ts';
import type { SetupCode } from './process/first-admin.ts';
import { openDrivers, openQueue } from './drivers.ts';
import type { ComponentDeps } from './drivers.ts';
import type { WorkerSupervisor, WorkerState } from './process/worker-supervisor.ts';
import { readOperationsToken } from './process/operations-token.ts';
import { allRoles, assertShared, sharingWarning } from './config/roles.ts';
import type { Roles } from './config/roles.ts';
import { registryTasks } from './commands/registry-tasks.ts';
import { surviveStrayErrors } from './process/stray-errors.ts';
import { closingOnce, closingTogether } from './process/closing.ts';
import { fitHeapToBuffers } from './process/heap.ts';
import { openHttpRedirect } from './process/http-redirect.ts';
import { openTls } from './process/tls.ts';
import { openProxy } from './threads/open-proxy.ts';
import type { ProxyOfProcess } from './threads/open-proxy.ts';

/** A thread loads only the components that it runs, because each takes megabytes of memory and delays the start. */
const components = {
  registry: async () => await import('./components/registry.ts'),
  api: async () => await import('./components/api.ts'),
  worker: async () => await import('./components/worker.ts'),
};

/**
 * A running platform, or the part of a platform in this process. Disposing it shuts everything down in order, even if a part
 * fails to close: failures are logged, and thrown at the end. Backends keep running.
 */
export interface Platform extends AsyncDisposable {
  readonly urls: PlatformUrls;
  /** The first account; only in a process with the API. */
  readonly account: FirstAccount | undefined;
  /** How to create the first administrator, as long as there is none; only in a process with the API. */
  readonly setupCode: SetupCode | undefined;
  /** The state of the worker after the start; only in a process with a worker. */
  readonly worker: WorkerState | undefined;
  /** Request handlers for another listener of this process; only of components in this thread. */
  readonly handlers: { readonly api: ServerHandlers | undefined; readonly proxy: ServerHandlers | undefined };
  readonly bus: Bus;
  /** The name of this node. */
  readonly node: string;
}

/** A platform with all components in this process. */
export interface WholePlatform extends Platform {
  readonly account: FirstAccount;
  readonly worker: WorkerState;
}

/** Opens all components in this process. Throws the errors of `openPlatform`. */
export async function openWholePlatform(options: { config: Config; log: Log }): Promise<WholePlatform> {
  const platform = await openPlatform({ ...options, roles: allRoles });
  const { account, worker } = platform;
  if (!account || !worker) throw new Error('A component is missing');
  return { ...platform, account, worker };
}

/**
 * Opens the components of some roles in this process. Throws `ConfigError` if they cannot reach the components of other processes or if
 * a port is in use, and `StoreError` with code `locked` if another process uses the data folder.
 */
export async function openPlatform(options: { config: Config; log: Log; roles: Roles }): Promise<Platform> {
  const { config, log, roles } = options;
  assertShared(config, roles);
  const warning = sharingWarning(config, roles);
  if (warning !== undefined) log.warn(warning);
  const token = await readOperationsToken(config.operationsTokenFile);
  await using opening = new AsyncDisposableStack();
  const metrics = openMetrics();
  opening.use(surviveStrayErrors({ clock: systemClock, log, metrics }));
  const deps = await openDrivers({ config, log, roles, metrics }, opening);
  if (roles.has('api') || roles.has('registry')) await deps.tokens.listen();
  const tls = await openTls(deps, opening);
  const listeners = await openListeners({ config, roles, contexts: tls?.contexts }, opening);
  const { api: apiUrl } = urlsOf(config, listeners);
  const proxy = roles.has('proxy') ? opening.use(await openProxy(deps, { roles, apiUrl, tls })) : undefined;
  const urls = urlsOf(config, listeners, proxy?.hostPort);
  await openHttpRedirect({ config, urls }, opening);
  const { account, setupCode } = roles.has('api') ? await ensureFirstAccountAndAdmin(deps) : {};
  const registry = listeners.registry && opening.use((await components.registry()).startRegistry(deps));
  if (registry) listeners.registry?.open(registry);
  const queue = roles.has('api') || roles.has('worker') ? opening.use(await openQueue(deps)) : undefined;
  // The worker opens before the API, so that it has adopted the running backends before the first connect request arrives.
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
  const checks = readinessChecks(deps, { roles, queue, worker, proxy });
  const operations = {
    metrics: proxy?.metrics ?? metrics,
    checks,
    tasks,
    host: config.operationsHost,
    ...(token !== undefined && { token }),
  };
  listeners.operations.open({ handle: operationsHandler(operations) });
  if (config.blobs === 'gridfs') fitHeapToBuffers();
  opening.use(systemClock.after(collectAfterMs, collectStartupGarbage));

  // Closed from last to first; if one part fails, the others are still closed. `opening` closes last, in this order: worker, queue,
  // registry, the listeners, bus, store.
  const owned = new AsyncDisposableStack();
  owned.use(opening.move());
  if (listeners.api) owned.use(listeners.api);
  owned.use(closingTogether(api, proxy));
  owned.defer(() => listeners.api?.close());
  owned.use(tasks);
  return {
    urls,
    account,
    setupCode,
    worker: worker?.atStart,
    handlers: { api, proxy: proxy?.handlers },
    bus: deps.bus,
    node: deps.nodeName,
    [Symbol.asyncDispose]: closingOnce(owned, log),
  };
}

/** Creates the first account, and the first administrator or the set-up code for one. */
async function ensureFirstAccountAndAdmin({
  store,
  dataFolder: folder,
  config,
}: ComponentDeps): Promise<{ account?: FirstAccount; setupCode?: SetupCode | undefined }> {
  const account = await ensureFirstAccount(store, config.account, folder);
  const passwords = new PasswordHashes(recommendedCosts);
  const { adminEmail: email, adminPasswordFile: passwordFile } = config;
  const setupCode = await ensureFirstAdmin({ store, passwords, folder, account: account.name, email, passwordFile });
  return { account, setupCode };
}

interface ChecksOf {
  readonly roles: Roles;
  readonly queue: Queue | undefined;
  readonly worker: WorkerSupervisor | undefined;
  readonly proxy: ProxyOfProcess | undefined;
}

/** The conditions under which this process is ready. */
function readinessChecks(deps: ComponentDeps, { roles, queue, worker, proxy }: ChecksOf): ReadinessChecks {
  return {
    store: () => deps.store.ping(),
    ...(keepsFiles(deps.config, roles) && { disk: () => deps.reserve.require() }),
    bus: () => deps.bus.ping(),
    ...(roles.has('registry') && { blobs: async () => await deps.images?.blobs.ping() }),
    ...(queue && { queue: () => queue.ping() }),
    ...(worker && { worker: () => worker.ping() }),
    ...(proxy?.ping && { proxy: proxy.ping }),
  };
}

/** Whether this process stores documents or blobs on its own disk. */
function keepsFiles({ store, blobs }: Config, roles: Roles): boolean {
  return store === 'sqlite' || (blobs === 'files' && roles.has('registry'));
}
