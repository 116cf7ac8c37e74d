import { expect, test } from 'vitest';
import { backendChanged } from '../contract/messages.ts';
import { openInProcessBus } from '../core/bus/in-process.ts';
import { systemClock } from '../core/clock/system-clock.ts';
import { silentLog } from '../core/log/log.ts';
import { steered } from '../test/kit/ports/steered.ts';
import { backends, becomeTerminated, newBackend } from './backend.ts';
import { openBackendWatch } from './backend-watch.ts';
import { backendPlan } from './testing/backend-plan.ts';
import { openTestStore } from '../test/kit/ports/test-store.ts';

const followers = 50;

test('followers of one backend share the read after a change, and all of them get the change', async () => {
  const log = silentLog();
  await using opened = await openTestStore();
  let reads = 0;
  const store = steered(opened, {
    onCall: async ({ method, run }) => {
      if (method === 'get') reads += 1;
      return await run();
    },
  });
  await using bus = openInProcessBus({ log });
  await using watch = await openBackendWatch({ store, bus, clock: systemClock, pollEveryMs: 60_000 });
  const backend = newBackend(backendPlan(), new Date());
  await store.insert(backends, backend);

  const { signal } = new AbortController();
  const following = Array.from({ length: followers }, () => watch.follow(backend.id, signal));
  const next = async () =>
    (await Promise.all(following.map(async (each) => await each.next()))).map(({ value }) => value?.status);
  expect(new Set(await next())).toEqual(new Set(['scheduled']));
  reads = 0;
  const changed = next();
  await store.update(backends, backend.id, (current) =>
    becomeTerminated(current, { kind: null, reason: null, exitCode: 0 }, new Date()),
  );
  await bus.publish(backendChanged, { backend: backend.id, status: 'terminated' });
  expect(await changed).toEqual(Array.from({ length: followers }, () => 'terminated'));
  expect(reads).toBe(1);
});
