import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Queue } from '../../core/queue/queue.ts';
import { openEngine, openWorker } from '../../worker/index.ts';
import type { WorkerSettings } from '../../worker/index.ts';
import type { ComponentDeps } from '../drivers.ts';
import { addressOf } from '../process/listeners.ts';
import { dataFolderIdentity, showPresence } from '../process/data-folder-identity.ts';
import { listenProblem } from '../process/listen-problem.ts';
import { keptLogSeconds } from '../config/retention-settings.ts';
import { guardMountFolder, mountFolder } from '../process/mount-folder.ts';
import { superviseWorker } from '../process/worker-supervisor.ts';
import type { WorkerSupervisor } from '../process/worker-supervisor.ts';

/** Opens the worker of this node from the shared dependencies and the configuration. */
export async function startWorker(
  deps: ComponentDeps,
  { queue, registryHost }: { readonly queue: Queue; readonly registryHost: string },
): Promise<WorkerSupervisor> {
  const { config, nodeName, clock } = deps;
  const log = deps.log.child({ component: 'worker' });
  const host = config.dockerHost;
  const nameSuffix = deps.secret.deriver('container names');
  const settings = { ...workerSettings(deps, registryHost), ...(await thisMachine()) };
  if (settings.mountFolder !== undefined) await guardMountFolder(settings.mountFolder, log);
  return await superviseWorker({
    open: async (parts, signal) => {
      parts.use(await showPresence(deps.dataFolderId));
      const dataFolder = await dataFolderIdentity(deps);
      const engine = parts.use(
        await openEngine({
          ...(host !== undefined && { host }),
          node: nodeName,
          dataFolder,
          ownsFolder: !deps.store.isShared,
          openFilesLimit: config.openFilesLimit,
          nameSuffix,
          log,
        }),
      );
      const cpu = cpuDefault(config.defaultCpuPercent, engine.cpus);
      const worker = openWorker({ ...deps, queue, log, engine, settings: { ...settings, ...cpu }, signal });
      return parts.use(
        await worker.catch(async (error: unknown) => {
          // The gateway is the only listener of a worker.
          throw await listenProblem(error, addressOf(config, 'gatewayHost', 'gatewayPort'));
        }),
      );
    },
    clock,
    log,
  });
}

/** By default, a backend may use half of the machine's processors, at least one. */
function cpuDefault(percent: number | undefined, cpus: number): Pick<WorkerSettings, 'defaultCpuPercent'> {
  const defaultCpuPercent = percent ?? Math.max(100, 50 * cpus);
  return defaultCpuPercent === 0 ? {} : { defaultCpuPercent };
}

/** Identifies this machine by the boot ID of the Linux kernel, which is the same in containers. */
async function thisMachine(): Promise<{ machine?: string }> {
  const machine = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined);
  return machine === undefined ? {} : { machine: machine.trim() };
}

function workerSettings(deps: ComponentDeps, registryHost: string): WorkerSettings {
  const { config, nodeName } = deps;
  const mounts = mountFolder(deps);
  return {
    node: nodeName,
    cluster: config.cluster,
    registryHost: config.registryPullHost ?? registryHost,
    dataFolder: deps.dataFolder,
    leaseFolder: join(deps.dataFolder, 'leases'),
    startTimeoutSeconds: config.startTimeoutSeconds,
    pullTimeoutSeconds: config.pullTimeoutSeconds,
    prefetchEnabled: config.prefetch,
    ...(config.prefetchReserveBytes !== undefined && { prefetchReserveBytes: config.prefetchReserveBytes }),
    stopGraceSeconds: config.stopGraceSeconds,
    defaultMemoryBytes: config.defaultMemoryBytes,
    ...(config.diskBytesLimit > 0 && { diskBytesLimit: config.diskBytesLimit }),
    pidsLimit: config.pidsLimit,
    capabilities: config.capabilities,
    firewall: config.firewall,
    ...(config.dnsServers.length > 0 && { dnsServers: config.dnsServers }),
    ...(config.containerRuntime !== undefined && { runtime: config.containerRuntime }),
    ...(mounts !== undefined && { mountFolder: mounts }),
    keptLogs: {
      folder: join(deps.dataFolder, 'logs'),
      maxBytes: config.keptLogBytes,
      seconds: keptLogSeconds(config),
      totalBytes: config.keptLogTotalBytes,
    },
    ...(config.advertisedHost !== undefined && {
      gateway: { host: config.gatewayHost, port: config.gatewayPort, advertisedHost: config.advertisedHost },
    }),
    ...(config.maxBackends > 0 && { maxBackends: config.maxBackends }),
    ...(config.nodeMemoryBytes !== undefined && { offeredMemoryBytes: config.nodeMemoryBytes || Infinity }),
    // Starts are CPU-bound: more of them at once only make each one slower.
    maxConcurrentStarts: 2 * availableParallelism(),
  };
}
