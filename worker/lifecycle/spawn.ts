/** Starts a backend, from `scheduled` to `ready`. */
import { abortable } from '../../core/async/abortable.ts';
import { settledWithin } from '../../core/async/with-timeout.ts';
import { advance } from '../../model/backend.ts';
import { leaseMs } from '../../model/key.ts';
import { containerSpec } from './container-spec.ts';
import { dnsServersFor } from './dns-servers.ts';
import { finalize, releaseEgress } from './finalize.ts';
import type { WorkerContext } from '../context.ts';
import { EngineError, isEngineError } from '../docker/engine-error.ts';
import { keepKey } from '../leases/leases.ts';
import { openMount } from './mounts.ts';
import { StartFailure, engineAwayPauseMs, pullImage } from './pull-image.ts';
import { readImage } from './read-image.ts';
import { becomeReadyWhenListening } from './become-ready.ts';
import type { Run } from './run.ts';
import { stopBackend } from './stop.ts';

/** Upper bound on recoverable failures of one start, which may follow each other: no image, then no network. */
const maxRecoveries = 5;

/** The pause between two reads of a store that does not answer. */
const storeAwayPauseMs = 500;

/**
 * Starts a backend, in the background. The run shows the result.
 *
 * @returns resolves when the start needs no permit at the moment: its container runs, or it waits for something else
 */
export function beginSpawn(worker: WorkerContext, run: Run): Promise<void> {
  const { promise: needsNoPermit, resolve: onWait } = Promise.withResolvers<void>();
  const spawned = spawn(worker, run, onWait).catch((error: unknown) => {
    if (run.startUpSignal.aborted) return;
    worker.log.warn({ err: error, backend: run.id }, 'Backend did not start');
    void finalize(worker, run, { exitCode: null, failure: failureOf(error) });
  });
  run.startUp(spawned.finally(onWait));
  return needsNoPermit;
}

/** @param onWait - called before each wait for anything but a permit */
async function spawn(worker: WorkerContext, run: Run, onWait: () => void): Promise<void> {
  await run.containerLease?.open();
  const keyHeld = keepKey(worker, run, (kind) => stopBackend(worker, run, kind, 'keyexpired'));
  {
    using _pause = run.pauseStartTime(worker.clock);
    await waitForPredecessor(worker, run, onWait);
    await waitForHolderHere(worker, run, onWait);
  }
  if (run.backend.status === 'scheduled') beginLoading(worker, run);
  await startContainer(worker, run, { keyHeld, onWait });
  onWait();
  await becomeReadyWhenListening(worker, run);
}

function beginLoading({ clock }: WorkerContext, run: Run): void {
  const now = clock.now();
  void run.write((backend) => advance(backend, 'loading', now));
}

/**
 * Waits until the previous holder of the key has ended. If other processes grant leases, waits at most until its last lease has ended:
 * after that it must not act.
 */
async function waitForPredecessor(worker: WorkerContext, run: Run, onWait: () => void): Promise<void> {
  const { waitsFor } = run.backend;
  if (waitsFor === undefined) return;
  onWait();
  const ended = async (signal: AbortSignal) => await untilEnded(worker, waitsFor, signal);
  if (worker.store.isShared)
    await settledWithin({ clock: worker.clock, ms: leaseMs, signal: run.startUpSignal }, ended);
  else await ended(run.startUpSignal);
  run.startUpSignal.throwIfAborted();
}

/** Resolves when a backend, of any node, has ended. While the store does not answer, it counts as running. */
async function untilEnded({ watch, clock, log }: WorkerContext, id: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const { live } of watch.follow(id, signal)) if (!live) return;
      return;
    } catch (error) {
      log.warn({ err: error, backend: id }, 'Cannot read the previous holder of the key, trying again');
    }
    await clock.sleep(storeAwayPauseMs, signal);
  }
}

/** Waits for earlier holders of the key on this node, whatever their documents say: a node never runs two containers of a key. */
async function waitForHolderHere(worker: WorkerContext, run: Run, onWait: () => void): Promise<void> {
  for (let holder = holderBefore(worker, run); holder; holder = holderBefore(worker, run)) {
    onWait();
    await abortable(holder.gone, run.startUpSignal);
  }
}

/** A run of this node to which the same key was assigned earlier, and whose container is not gone yet. */
function holderBefore({ runs }: WorkerContext, { backend }: Run): Run | undefined {
  const { account, service, key, fencingToken = 0 } = backend;
  if (key === undefined) return undefined;
  return Array.from(runs.values()).find(({ backend: other, isGone }) => {
    const isSameKey = other.key === key && other.service === service && other.account === account;
    return isSameKey && !isGone && (other.fencingToken ?? 0) < fencingToken;
  });
}

/** Creates and starts the container, and recovers from recoverable failures. */
async function startContainer(
  worker: WorkerContext,
  run: Run,
  { keyHeld, onWait }: { readonly keyHeld: Promise<void>; readonly onWait: () => void },
): Promise<void> {
  const mountFolder = await mountOf(worker, run);
  for (let recoveries = 0; ;) {
    try {
      await attemptStart(worker, run, { mountFolder, keyHeld });
      return;
    } catch (error) {
      run.startUpSignal.throwIfAborted();
      if (!isEngineError(error, 'unavailable')) recoveries += 1;
      if (recoveries > maxRecoveries) throw error;
      onWait();
      await recoverFrom(worker, run, error);
    }
  }
}

/** The phase of a start that needs a permit: it uses much CPU, of the engine and the machine. */
async function attemptStart(
  worker: WorkerContext,
  run: Run,
  { mountFolder, keyHeld }: { readonly mountFolder: string | undefined; readonly keyHeld: Promise<void> },
): Promise<void> {
  using _permit = await worker.starts.acquire(run.startUpSignal);
  if (await hasStarted(worker, run)) return;
  const id = await createContainer(worker, run, mountFolder);
  await abortable(keyHeld, run.startUpSignal);
  await limitEgress(worker, run);
  await worker.engine.containers.start(id);
  run.containerStarted(id);
}

/** Writes the firewall's rules for a container that is about to start. */
async function limitEgress({ firewall }: WorkerContext, run: Run): Promise<void> {
  const { address, backend } = run;
  if (address === undefined) return;
  await firewall.admit(address, backend.egress ?? 'open').catch((error: Error) => {
    throw new StartFailure(error.message, { cause: error });
  });
}

/** Whether an earlier attempt started its container after all: if containerd fails meanwhile, the engine may not report it. */
async function hasStarted(worker: WorkerContext, run: Run): Promise<boolean> {
  const { container } = run;
  const state = container && (await worker.engine.containers.inspect(container.id));
  if (!container || !state || state.phase === 'created') return false;
  run.containerStarted(container.id);
  return true;
}

async function createContainer(worker: WorkerContext, run: Run, mountFolder: string | undefined): Promise<string> {
  run.startUpSignal.throwIfAborted();
  const image = await readImage(worker, run);
  const spec = containerSpec(run.backend, worker.settings, {
    mountFolder,
    leaseFolder: run.containerLease?.engineFolder,
    portHelper: worker.portHelper?.engineFile,
    env: worker.containerEnv.open(run.backend),
    dnsServers: await dnsServersFor(run.backend.egress ?? 'open', { configured: worker.settings.dnsServers }),
    image,
  });
  run.startUpSignal.throwIfAborted();
  const address = run.address ?? worker.engine.network.addresses.assign();
  run.useAddress(address);
  const id = await worker.engine.containers.create({ ...spec, address });
  run.containerCreated(id);
  const now = worker.clock.now();
  void run.write((backend) => advance(backend, 'starting', now));
  run.startUpSignal.throwIfAborted();
  return id;
}

/** Removes the cause of a failed attempt, or throws the error again if that is impossible. */
async function recoverFrom(worker: WorkerContext, run: Run, error: unknown): Promise<void> {
  if (!(error instanceof EngineError)) throw error;
  switch (error.code) {
    case 'no-image':
      await pullImage(worker, run);
      return;
    case 'no-network':
      await worker.engine.network.ensure();
      await releaseEgress(worker, run);
      if (run.address !== undefined) worker.engine.network.addresses.release(run.address);
      run.useAddress(undefined);
      return;
    case 'address-taken':
      await releaseEgress(worker, run);
      // The address is not released: another container has it.
      run.useAddress(undefined);
      return;
    case 'unavailable':
      worker.log.warn({ err: error, backend: run.id }, 'The engine does not answer, trying again');
      await worker.clock.sleep(engineAwayPauseMs, run.startUpSignal);
      return;
    case 'adjusted':
      worker.log.info({ err: error }, 'The engine cannot set a limit of its containers, which is omitted from now on');
      return;
    case 'no-container':
    case 'name-taken':
      return;
    case 'refused':
      throw error;
  }
}

async function mountOf(worker: WorkerContext, run: Run): Promise<string | undefined> {
  if (run.backend.mount === undefined) return undefined;
  const { mountFolder } = worker.settings;
  if (mountFolder === undefined)
    throw new StartFailure('The backend has a mount, and no mount folder is configured on this node');
  return await openMount(mountFolder, run.backend);
}

function failureOf(error: unknown): string {
  if (error instanceof StartFailure) return error.message;
  if (error instanceof EngineError) return `The container did not start: ${error.message}`;
  return 'The container did not start because of an error of the platform';
}
