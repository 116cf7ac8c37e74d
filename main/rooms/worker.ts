import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Queue } from '../../core/queue/queue.ts';
import { openEngine, openWorker } from '../../worker/index.ts';
import type { WorkerSettings } from '../../worker/index.ts';
import type { Ground } from '../ground.ts';
import { mountFolder } from '../mount-folder.ts';
import { openNodeWorker } from '../node-worker.ts';
import type { NodeWorker } from '../node-worker.ts';

/** Opens the worker of this node with what it needs of the ground and the configuration. */
export async function startWorker(
  ground: Ground,
  { queue, registryHost }: { readonly queue: Queue; readonly registryHost: string },
): Promise<NodeWorker> {
  const { config, nodeName, clock } = ground;
  const log = ground.log.child({ room: 'worker' });
  const host = config.dockerHost;
  const settings = { ...workerSettings(ground, registryHost), ...(await thisMachine()) };
  return await openNodeWorker({
    open: async (parts) => {
      const engine = parts.use(await openEngine({ ...(host !== undefined && { host }), node: nodeName, log }));
      return parts.use(await openWorker({ ...ground, queue, log, engine, settings }));
    },
    clock,
    log,
  });
}

/** Linux names each run of its kernel, and tells containers the same name. */
async function thisMachine(): Promise<{ machine?: string }> {
  const machine = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined);
  return machine === undefined ? {} : { machine: machine.trim() };
}

function workerSettings(ground: Ground, registryHost: string): WorkerSettings {
  const { config, nodeName } = ground;
  const mounts = mountFolder(ground);
  return {
    node: nodeName,
    cluster: config.cluster,
    registryHost: config.registryPullHost ?? registryHost,
    dataFolder: ground.dataFolder,
    startTimeoutSeconds: config.startTimeoutSeconds,
    pullTimeoutSeconds: config.pullTimeoutSeconds,
    fetchesAhead: config.fetchAhead,
    ...(config.fetchReserveBytes !== undefined && { fetchReserveBytes: config.fetchReserveBytes }),
    stopGraceSeconds: config.stopGraceSeconds,
    defaultMemoryBytes: config.defaultMemoryBytes,
    pidsLimit: config.pidsLimit,
    capabilities: config.capabilities,
    ...(config.containerRuntime !== undefined && { runtime: config.containerRuntime }),
    ...(mounts !== undefined && { mountFolder: mounts }),
    keptLogs: {
      folder: join(ground.dataFolder, 'logs'),
      maxBytes: config.keptLogBytes,
      seconds: config.keptLogSeconds,
      totalBytes: config.keptLogTotalBytes,
    },
    ...(config.advertisedHost !== undefined && {
      gateway: { host: config.gatewayHost, port: config.gatewayPort, advertisedHost: config.advertisedHost },
    }),
    ...(config.maxBackends > 0 && { maxBackends: config.maxBackends }),
    ...(config.nodeMemoryBytes !== undefined && { offeredMemoryBytes: config.nodeMemoryBytes || Infinity }),
    // Starting is CPU work: more at a time only makes each one slower.
    maxConcurrentStarts: 2 * availableParallelism(),
  };
}
