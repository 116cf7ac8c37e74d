/** A worker on its own platform, and functions that read the state of its backends. */
import { afterAll, beforeAll, describe } from 'vitest';
import type { BackendStatus } from '../../contract/statuses.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { backends } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import type { WorkerSettings } from '../settings.ts';
import { eventually, openTestPlatform, whyNoTests } from './test-platform.ts';
import type { TestPlatform } from './test-platform.ts';

export interface WorkerFixture {
  readonly platform: TestPlatform;
}

export interface OwnedWorkerFixture extends WorkerFixture, AsyncDisposable {}

/** Opens a platform and a worker with these settings. */
export async function openWorkerFixture(
  settings: Partial<WorkerSettings> = {},
  clock: Clock = systemClock,
): Promise<OwnedWorkerFixture> {
  await using parts = new AsyncDisposableStack();
  const platform = parts.use(await openTestPlatform());
  platform.useClock(clock);
  parts.use(await platform.openWorker({ settings, clock }));
  const owned = parts.move();
  return { platform, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Describes a worker on a real engine, if there is one. All tests share a platform, which is open while they run. */
export async function describeWorker(what: string, describeTests: (fixture: WorkerFixture) => void): Promise<void> {
  const why = await whyNoTests();
  describe.skipIf(why !== undefined)(`${what} on a real engine ${why ?? ''}`, () => {
    let opened: OwnedWorkerFixture | undefined;
    beforeAll(async () => void (opened = await openWorkerFixture()));
    afterAll(async () => await opened?.[Symbol.asyncDispose]());
    describeTests({
      get platform() {
        if (!opened) throw new Error('The platform is open only while tests run');
        return opened.platform;
      },
    });
  });
}

export async function statusesOf(platform: TestPlatform, id: string): Promise<BackendStatus[]> {
  return (await platform.get(id)).history.map(({ status }) => status);
}

/** `undefined` while the container exists, for `eventually`. */
export async function isRemoved(platform: TestPlatform, id: string): Promise<true | undefined> {
  return await platform
    .containerOf(id)
    .inspect()
    .then(
      () => undefined,
      () => true,
    );
}

/** Fetches a path from a backend. */
export async function fetchText(platform: TestPlatform, id: string, path: string): Promise<string> {
  const { address } = await platform.get(id);
  const response = await fetch(`http://${address?.host}:${address?.port}${path}`);
  return await response.text();
}

/** The live backends of the node once all its containers are removed. */
export async function leftBehind({ engine, store, node }: TestPlatform): Promise<Backend[]> {
  await eventually(async () => ((await engine.engine.containers.list()).length === 0 ? true : undefined));
  return await store.find(backends, { index: 'byNode', equals: { node, live: true } });
}
