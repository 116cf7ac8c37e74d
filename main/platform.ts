/** The composition root: opens ground, doors and rooms in order, and closes them in order. */
import { operationsHandler } from '../core/http/operations.ts';
import type { Log } from '../core/log/log.ts';
import type { Config } from './config.ts';
import { openDoors } from './doors.ts';
import type { PlatformUrls } from './doors.ts';
import { ensureFirstAccount } from './first-account.ts';
import type { FirstAccount } from './first-account.ts';
import { openGround } from './ground.ts';
import type { Ground } from './ground.ts';
import { startApi, startProxy, startRegistry, startWorker } from './rooms.ts';
import type { WorkerState } from './rooms.ts';

/** A running platform. Disposing it shuts it down in order; backends run on, and the next start adopts them. */
export interface Platform extends AsyncDisposable {
  readonly urls: PlatformUrls;
  readonly account: FirstAccount;
  readonly worker: WorkerState;
}

/**
 * Opens the whole platform in this process. Throws `StoreError` with code `locked` when another process holds the data folder,
 * and what `listen` fails with when a port is taken.
 */
export async function openPlatform({ config, log }: { config: Config; log: Log }): Promise<Platform> {
  await using opening = new AsyncDisposableStack();
  const ground = await openGround(config, log, opening);
  const account = await ensureFirstAccount(ground.store, config.account, ground.dataFolder);
  const doors = await openDoors(config, opening);
  doors.registry.open(opening.use(startRegistry(ground)));
  const proxy = opening.use(await startProxy(ground));
  doors.proxy.open(proxy);
  // The worker adopts what runs before anybody can ask for it anew.
  const worker = await startWorker(ground, doors.urls.registry, opening);
  const api = opening.use(await startApi(ground, doors.urls));
  doors.api.open(api);
  doors.operations.open({ handle: operationsHandler(ground.metrics, readinessChecks(ground, worker)) });

  const rest = opening.move();
  const close = async () => {
    doors.api.close();
    await Promise.all([api[Symbol.asyncDispose](), proxy[Symbol.asyncDispose]()]);
    await Promise.all([doors.api[Symbol.asyncDispose](), doors.proxy[Symbol.asyncDispose]()]);
    // What is left, in reverse: worker, registry, their doors, queue and bus, the store.
    await rest.disposeAsync();
  };
  let closing: Promise<void> | undefined;
  return { urls: doors.urls, account, worker, [Symbol.asyncDispose]: () => (closing ??= close()) };
}

function readinessChecks(ground: Ground, worker: WorkerState) {
  return {
    store: () => ground.store.ping(),
    blobs: () => ground.blobs.ping(),
    queue: () => ground.queue.ping(),
    bus: () => ground.bus.ping(),
    worker: async () => {
      if (!worker.running) throw new Error(worker.reason);
    },
  };
}
