/** A platform for tests of the worker: a real store, queue, bus and engine, and the workers that a test opens. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { clusterQueue, nodeQueue, spawnJob, stopJob } from '../../contract/jobs.ts';
import type { BackendStatus, TerminationKind } from '../../contract/statuses.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import type { Bus } from '../../core/bus/bus.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import type { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { openLog, silentLog } from '../../core/log/log.ts';
import type { Log } from '../../core/log/log.ts';
import { openInProcessQueue } from '../../core/queue/in-process.ts';
import type { Queue } from '../../core/queue/queue.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import type { Store } from '../../core/store/store.ts';
import { upsert } from '../../core/store/upsert.ts';
import { backends, becomeLost, newBackend, rank, requestStop } from '../../model/backend.ts';
import type { Backend, BackendPlan } from '../../model/backend.ts';
import { defaultCapabilities } from '../../model/capabilities.ts';
import { newBackendId } from '../../model/ids.ts';
import { claimKey, keyId, keys } from '../../model/key.ts';
import type { RepositoryAccess } from '../../model/registry-grant.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { openTestEngine, whyNoEngine } from './test-engine.ts';
import type { TestEngine } from './test-engine.ts';
import type { Engine } from '../docker/engine.ts';
import type { WorkerSettings } from '../settings.ts';
import { openWorker } from '../worker.ts';
import type { Worker } from '../worker.ts';
import { staticBusybox } from '../../test/kit/packages/docker-packages.ts';
import { TestImages } from './test-images.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

/** The end of a script that waits: it takes no CPU time, and traps run at once. */
export const wait = 'sleep 86400 & wait';

/** A program for a backend: serves its folder, and exits on SIGTERM. */
export const polite = `trap "exit 0" TERM; httpd -p $PORT; ${wait}`;

/** A program for a backend: serves its folder, and ignores SIGTERM. */
export const stubborn = 'trap "" TERM; httpd -p $PORT; exec sleep 86400';

export interface TestWorkerOptions {
  readonly settings?: Partial<WorkerSettings>;
  readonly clock?: Clock;
  readonly store?: Store;
  readonly bus?: Bus;
  readonly engine?: Engine;
  readonly log?: Log;
  readonly queue?: Queue;
  /** For a second worker: the platform's metrics belong to the first. */
  readonly metrics?: Registry;
}

/** Why the worker cannot be tested on a real engine here, or `undefined` if it can. */
export async function whyNoTests(): Promise<string | undefined> {
  const why = await whyNoEngine();
  if (why !== undefined) return why;
  return (await staticBusybox()) === undefined ? 'no static busybox is installed (Debian: busybox-static)' : undefined;
}

const log = process.env['BERTH_TEST_LOG'] === undefined ? silentLog() : openLog('debug');

/**
 * A platform with a node of its own.
 *
 * @param engineHost - another socket of the engine
 */
export async function openTestPlatform(
  engineHost?: string,
  engineOptions?: Parameters<typeof openTestEngine>[2],
): Promise<TestPlatform> {
  await using parts = new AsyncDisposableStack();
  const node = `test-${randomBytes(5).toString('hex')}`;
  const folder = await mkdtemp(join(tmpdir(), 'berth-worker-'));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const engine = parts.use(await openTestEngine(node, engineHost, engineOptions));
  const secret = new PlatformSecret(randomBytes(32));
  const store = parts.use(await openTestStore());
  const bus = parts.use(openInProcessBus({ log }));
  const queue = parts.use(openInProcessQueue({ clock: systemClock, log }));
  const images = parts.use(await TestImages.open());
  parts.defer(() => engine.removeImages(images.references));
  parts.defer(() => engine.removeContainers());
  return new TestPlatform({ engine, node, folder, secret, store, bus, queue, images, parts: parts.move() });
}

interface Parts {
  readonly engine: TestEngine;
  readonly node: string;
  readonly folder: string;
  readonly secret: PlatformSecret;
  readonly store: Store;
  readonly bus: Bus;
  readonly queue: Queue;
  readonly images: TestImages;
  readonly parts: AsyncDisposableStack;
}

export class TestPlatform implements AsyncDisposable {
  readonly node: string;
  readonly cluster: string;
  readonly secret: PlatformSecret;
  readonly folder: string;
  readonly store: Store;
  readonly bus: Bus;
  readonly queue: Queue;
  readonly images: TestImages;
  readonly engine: TestEngine;
  readonly metrics = new Registry();
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.node = parts.node;
    this.cluster = `cluster-${parts.node}`;
    this.folder = parts.folder;
    this.secret = parts.secret;
    this.store = parts.store;
    this.bus = parts.bus;
    this.queue = parts.queue;
    this.images = parts.images;
    this.engine = parts.engine;
    this.#parts = parts;
  }

  async openWorker(more: TestWorkerOptions = {}): Promise<Worker> {
    const { store, bus, queue, metrics, secret } = this;
    const { grants } = this.images;
    const { engine } = this.engine;
    const settings = { ...this.#settings(), ...more.settings };
    return await openWorker({
      clock: systemClock,
      store,
      bus,
      queue,
      log,
      metrics,
      grants,
      secret,
      engine,
      ...more,
      settings,
    });
  }

  /** Makes the store read this clock, as on a machine whose worker and store have one clock: start times count from the creation. */
  useClock(clock: Clock): void {
    this.store.now = async () => clock.now();
  }

  /** Stores a new backend, and by default adds its job. */
  async schedule(plan: Partial<BackendPlan> & { imageDigest: string }, notify = true): Promise<string> {
    const backend = newBackend(
      backendPlan({ id: newBackendId(), cluster: this.cluster, ...plan }),
      await this.store.now(),
    );
    await this.store.insert(backends, backend);
    const { id } = backend;
    if (notify) await this.queue.add(clusterQueue(this.cluster), spawnJob, { backend: id }, { id });
    return id;
  }

  /** Requests a stop, and by default notifies the node. */
  async stop(id: string, kind: TerminationKind, notify = true): Promise<void> {
    const now = await this.store.now();
    await this.store.update(backends, id, (backend) => requestStop(backend, kind, 'external', now));
    if (notify) await this.queue.add(nodeQueue(this.node), stopJob, { backend: id }, { id: `stop-${id}` });
  }

  /** Claims a key, as a connect does. */
  async claim(key: string): Promise<{ id: string; key: string; fencingToken: number }> {
    const id = newBackendId();
    const now = await this.store.now();
    const name = keyId('acme', 'draw', key);
    const claimed = await upsert(this.store, keys, name, (current) => claimKey(current, name, id, now));
    return { id, key, fencingToken: claimed.fencingToken };
  }

  /** Ends a backend as the orphan reaper does when its node counts as dead. */
  async declareLost(id: string): Promise<void> {
    const now = await this.store.now();
    await this.store.update(backends, id, (backend) => becomeLost(backend, now));
  }

  /** Pulls an image to this machine. */
  async pull(imageDigest: string): Promise<void> {
    const access: RepositoryAccess[] = [{ type: 'repository', name: 'acme/draw', actions: ['pull'] }];
    const token = await this.images.grants.issue({ subject: 'test', access }, 60, new Date());
    const { signal } = new AbortController();
    await this.engine.engine.images.pull(`${this.images.host}/acme/draw@${imageDigest}`, { token, signal });
  }

  /** Leaves a container as a worker does that dies between creating and starting it. */
  async leaveCreated(backend: string, imageDigest: string): Promise<void> {
    const { containers, network } = this.engine.engine;
    const image = `${this.images.host}/acme/draw@${imageDigest}`;
    const about = { backend, image, address: network.addresses.assign(), env: {}, labels: {} };
    await containers.create({ ...about, pidsLimit: 64, capabilities: [] });
  }

  /** Ends a backend, and waits for its end. */
  async end(id: string): Promise<void> {
    await this.stop(id, 'hard');
    await this.until(id, 'terminated');
  }

  async get(id: string): Promise<Backend> {
    const backend = await this.store.get(backends, id);
    if (!backend) throw new Error(`There is no backend "${id}"`);
    return backend;
  }

  /** The container of a backend, for operations that the worker's interface does not offer. */
  containerOf(id: string) {
    return this.engine.docker.getContainer(this.engine.engine.containerName(id));
  }

  /** The state of a backend's container as the worker sees it. */
  async stateOf(id: string) {
    return await this.engine.engine.containers.inspect(this.engine.engine.containerName(id));
  }

  /**
   * Waits until a backend has this status, or a later one.
   *
   * @param clock - a clock that moves on by 20 ms before each look
   */
  async until(id: string, status: BackendStatus, clock?: ManualClock): Promise<Backend> {
    return await eventually(async () => {
      await clock?.advance(20);
      const backend = await this.get(id);
      if (rank(backend.status) < rank(status)) return undefined;
      if (backend.live || status === 'terminated') return backend;
      throw new Error(`The backend has ended: ${JSON.stringify(backend.history.at(-1))}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.parts.disposeAsync();
  }

  #settings(): WorkerSettings {
    return {
      node: this.node,
      cluster: this.cluster,
      registryHost: this.images.host,
      // The default: a backend may have to wait, for a test or on a busy machine.
      startTimeoutSeconds: 300,
      pullTimeoutSeconds: 300,
      prefetchEnabled: true,
      // Programs of tests exit at once, but a busy engine reports an exit late.
      stopGraceSeconds: 60,
      pidsLimit: 64,
      capabilities: defaultCapabilities,
      maxConcurrentStarts: 4,
      dataFolder: this.folder,
      leaseFolder: join(this.folder, 'leases'),
      keptLogs: { folder: join(this.folder, 'logs'), maxBytes: 1024 * 1024, seconds: 3600, totalBytes: 0 },
    };
  }
}

/** Repeats a query until it returns a value, for at most a minute: on a busy machine, ten tests start containers at a time. */
export async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > deadline) throw new Error('The expected condition was not met in time');
    await systemClock.sleep(20);
  }
}
