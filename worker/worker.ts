/** Opens the worker of a node, in order, and closes it in reverse. */
import { prefetchJob, nodeQueue, stopJob } from '../contract/jobs.ts';
import { backendChanged } from '../contract/messages.ts';
import { abortable } from '../core/async/abortable.ts';
import type { Clock } from '../core/clock/clock.ts';
import { JobHandlers } from '../core/queue/queue.ts';
import type { Queue } from '../core/queue/queue.ts';
import { backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { ContainerEnv } from '../model/container-env.ts';
import { openBackendWatch } from '../model/backend-watch.ts';
import type { BackendWatch } from '../model/backend-watch.ts';
import { adopt } from './reconcile/adopt.ts';
import { BackendStreams } from './gateway/backend-streams.ts';
import { Connections } from './idle/connections.ts';
import { repeatUntilClosed, settledOnClose } from './close.ts';
import { followProxies } from './idle/follow-proxies.ts';
import { openContainerLeases } from './leases/container-lease.ts';
import type { ContainerLeases } from './leases/container-lease.ts';
import type { WorkerContext, WorkerDeps } from './context.ts';
import { openFirewall } from './firewall/firewall.ts';
import type { Firewall } from './firewall/firewall.ts';
import { Prefetcher } from './images/prefetch.ts';
import { countedEngine, openWorkerMetrics } from './metrics.ts';
import { openGateway } from './gateway/gateway.ts';
import type { Gateway } from './gateway/gateway.ts';
import { followDrain, NodeDrain } from './node/drain.ts';
import { beginHeartbeat } from './node/heartbeat.ts';
import { consumeSpawnJobs } from './scheduling/job-consumer.ts';
import { KeptLogs } from './logs/kept-logs.ts';
import { beginLimitingDisk } from './usage/disk-limit.ts';
import { LiveStats } from './usage/live-stats.ts';
import { assertOwnName } from './node/node-identity.ts';
import { removeLeftOverMounts } from './lifecycle/mounts.ts';
import { Pulls } from './images/pulls.ts';
import { EngineHealth } from './node/engine-health.ts';
import { installPortHelper } from './readiness/port-helper.ts';
import type { PortHelper } from './readiness/port-helper.ts';
import { reconcile } from './reconcile/reconcile.ts';
import { offeredMemory, promisedMemory } from './scheduling/capacity.ts';
import type { Run } from './lifecycle/run.ts';
import type { GatewaySettings } from './settings.ts';
import { Semaphore } from '../core/async/semaphore.ts';
import { StoreClock } from './node/store-clock.ts';
import { beginSweeping } from './idle/sweep.ts';
import { applyStopRequest } from './lifecycle/stop.ts';
import { beginWatching } from './reconcile/watch.ts';

/** The worker of one node. Disposing it ends its work; containers continue, and the next worker adopts them. */
export interface Worker extends AsyncDisposable {
  /** Throws while the Docker Engine of this node does not answer (`EngineError`) or another worker uses its name (`NodeNameError`). */
  ping(): Promise<void>;
}

/** A lost message delays the work it announced by at most this time. */
const reconcileEveryMs = 5_000;

/** A check runs four programs. */
const repairFirewallEveryMs = 60_000;

/** If the message about the end of a key's holder is lost, its successor starts at most this much later. */
const readHolderEveryMs = 1_000;

/** On any free port, which other processes read from the node's document. */
const ownMachineOnly: GatewaySettings = { host: '127.0.0.1', port: 0, advertisedHost: '127.0.0.1' };

/** The jobs only begin stops and prefetches, which continue in the background. */
const nodeJobConcurrency = 16;

/**
 * Begins to run backends on this node. Resolves when the backends of the previous worker are adopted: running ones are watched, the
 * end of exited ones is written, and those that were not started yet are being started.
 */
export async function openWorker(deps: WorkerDeps): Promise<Worker> {
  await using parts = new AsyncDisposableStack();
  const closing = new AbortController();
  const portHelper = await installPortHelper(deps);
  const containerLeases = deps.store.isShared ? await openContainerLeases(deps, portHelper) : undefined;
  const clock = deps.store.isShared ? parts.use(await StoreClock.open(deps)) : deps.clock;
  const watch = parts.use(await openBackendWatch({ ...deps, pollEveryMs: readHolderEveryMs }));
  const firewall = await openNodeFirewall(deps);
  const worker = newContext(deps, { clock, closing: closing.signal, watch, containerLeases, portHelper, firewall });
  parts.use(worker.metrics);
  parts.defer(() => removeUnusedFirewall(worker));
  parts.defer(() => settle(worker));
  parts.defer(() => closing.abort(new Error('The worker is closing')));
  parts.use(worker.engineHealth);
  await assertOwnName({ ...worker, signal: deps.signal });
  const gateway = parts.use(await openOwnGateway(worker, deps));
  const heartbeats = parts.use(await beginHeartbeat(worker, gateway.address));
  parts.use(await followDrain(worker));
  parts.use(await followProxies(worker.connections, { ...worker, node: worker.settings.node }));
  parts.use(await followEnds(worker));
  parts.use(await beginWatching(worker));
  await reconcile(worker);
  await firewall.settle();
  await removeLeftOverMounts(worker);
  gateway.open();
  parts.use(beginReconciling(worker));
  parts.use(beginRepairingFirewall(worker));
  parts.use(beginSweeping(worker));
  parts.use(beginLimitingDisk(worker));
  parts.use(worker.keptLogs.beginSweeping());
  const prefetcher = parts.use(new Prefetcher(worker));
  parts.use(await consumeNodeJobs(worker, prefetcher, deps.queue));
  parts.use(await consumeSpawnJobs(worker, deps.queue));
  worker.log.info({ backends: worker.runs.size }, 'Worker is open');
  const opened = parts.move();
  return {
    ping: async () => {
      const problem = worker.engineHealth.problem ?? heartbeats.problem;
      if (problem) throw problem;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function newContext(
  deps: WorkerDeps,
  opened: {
    clock: Clock;
    closing: AbortSignal;
    watch: BackendWatch;
    containerLeases: ContainerLeases | undefined;
    portHelper: PortHelper | undefined;
    firewall: Firewall;
  },
): WorkerContext {
  const runs = new Map<string, Run>();
  const claiming = new Map<string, Backend>();
  const { store, bus, grants, settings, clock: machineClock } = deps;
  const { clock, closing, watch, containerLeases, portHelper, firewall } = opened;
  const log = deps.log.child({ node: settings.node });
  const engineHealth = new EngineHealth({ engine: deps.engine, clock: machineClock, log });
  const metrics = openWorkerMetrics(deps.metrics, {
    statuses: () => Array.from(runs.values(), ({ backend }) => backend.status),
    engineAnswers: () => engineHealth.problem === undefined,
    offeredMemory: () => offeredMemory(deps),
    promisedMemory: () => promisedMemory({ runs, claiming, settings }),
  });
  const engine = countedEngine(deps.engine, (operation) => metrics.dockerFailed(operation));
  return {
    store,
    bus,
    clock,
    machineClock,
    grants,
    settings,
    engine,
    metrics,
    runs,
    closing,
    watch,
    log,
    engineHealth,
    drain: new NodeDrain(),
    claiming,
    starts: new Semaphore(settings.maxConcurrentStarts),
    pulls: new Pulls(engine.images),
    connections: new Connections((backend) => runs.has(backend)),
    keptLogs: new KeptLogs({ settings: settings.keptLogs, reserve: deps.reserve, clock: machineClock, log }),
    liveStats: new LiveStats(engine),
    firewall,
    containerEnv: new ContainerEnv(deps.secret),
    ...(containerLeases && { containerLeases }),
    ...(portHelper && { portHelper }),
  };
}

async function openOwnGateway(worker: WorkerContext, { settings, secret }: WorkerDeps): Promise<Gateway> {
  const streams = new BackendStreams(worker);
  return await openGateway(worker, {
    settings: settings.gateway ?? ownMachineOnly,
    secret,
    answer: (request, response) => streams.answer(request, response),
  });
}

/** Only root and the user of this process may connect to backends: the worker itself, and other processes through its gateway. */
async function openNodeFirewall({ engine, settings, log }: WorkerDeps): Promise<Firewall> {
  const { bridge, subnet } = engine.network;
  const users = [...new Set([0, process.getuid?.() ?? 0])];
  return await openFirewall({ mode: settings.firewall ?? 'off', rules: { bridge, subnet, users }, log });
}

/** Backends that continue without a worker keep their rules, and so does one whose start is under way. */
async function removeUnusedFirewall({ firewall, engine, log }: WorkerContext): Promise<void> {
  const remove = async () => {
    const containers = await engine.containers.list();
    if (containers.some(({ phase }) => phase !== 'exited')) return;
    await firewall.remove().catch((error: unknown) => {
      log.warn({ err: error }, 'Cannot remove the rules of the firewall');
    });
  };
  await settledOnClose(remove());
}

/** Stops a backend at once when another component has written its end; if the message is lost, the next pass stops it. */
async function followEnds(worker: WorkerContext): Promise<AsyncDisposable> {
  return await worker.bus.subscribe(backendChanged, ({ backend: id, status }) => {
    const run = worker.runs.get(id);
    if (status !== 'terminated' || !run || run.isFinalizing) return;
    worker.store.get(backends, id).then(
      (backend) => applyStopRequest(worker, run, backend),
      (error: unknown) =>
        worker.log.warn({ err: error, backend: id }, 'Cannot read an ended backend, the next pass will'),
    );
  });
}

function beginReconciling(worker: WorkerContext): AsyncDisposable {
  return repeatUntilClosed(worker.clock, reconcileEveryMs, async () => {
    await reconcile(worker).catch((error: unknown) => {
      if (!worker.closing.aborted)
        worker.log.warn({ err: error }, 'Cannot reconcile all backends, the next pass tries again');
    });
  });
}

function beginRepairingFirewall({ machineClock, firewall, log }: WorkerContext): AsyncDisposable {
  return repeatUntilClosed(machineClock, repairFirewallEveryMs, async () => {
    await firewall.repair().catch((error: unknown) => {
      log.error({ err: error }, 'Cannot restore the firewall rules, trying again in a minute');
    });
  });
}

/** Consumes the jobs of this node's own queue. */
async function consumeNodeJobs(worker: WorkerContext, prefetcher: Prefetcher, queue: Queue): Promise<AsyncDisposable> {
  const handlers = new JobHandlers()
    .on(stopJob, async ({ backend: id }, signal) => {
      const run = worker.runs.get(id);
      if (run) applyStopRequest(worker, run, await worker.store.get(backends, id));
      else {
        const containers = await abortable(worker.engine.containers.list(), signal);
        await adopt(
          worker,
          id,
          containers.find(({ backend }) => backend === id),
        );
      }
    })
    .on(prefetchJob, async ({ image }) => prefetcher.begin(image));
  return await queue.consume(nodeQueue(worker.settings.node), handlers, { concurrency: nodeJobConcurrency });
}

/** Waits, within a time limit, for the start-ups and writes of all runs. */
async function settle({ runs, closing }: WorkerContext): Promise<void> {
  if (!closing.aborted) return;
  const settled = Array.from(runs.values(), async (run) => await run.settled());
  await settledOnClose(Promise.all(settled));
}
