// Takes about 85 s
/** The platform is killed (kill -9) during pushes and garbage collections: acknowledged images exist, and no image is incomplete. */
import { describe, expect, test } from 'vitest';
import { runBerth, storedBlobs } from '../kit/platform/berth-command.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { PlatformOptions } from '../kit/platform/environments.ts';
import { RegistryClient } from '../kit/platform/registry-client.ts';
import type { PushedImage } from '../kit/platform/registry-client.ts';

/** Each round starts a platform twice, on machines that may be busy. */
const timeout = 240_000;
/** Enough that pushes are at each of their steps when the platform is killed. */
const concurrentPushes = 25;

for (const drivers of testDrivers()) {
  describe(`on ${drivers === 'embedded' ? 'SQLite and files' : 'MongoDB and GridFS'}`, () => {
    // The numbers of acknowledged pushes at the kill: few, and many. A round takes ten times as long on the protocol server for
    // tests.
    const acknowledgedAtKill = drivers === 'embedded' ? [3, 12] : [3];
    const start = async (settings: PlatformOptions['settings'] = {}) =>
      await startPlatform({ drivers, settings, only: ['registry,api'] });

    test(
      `killed during ${concurrentPushes} pushes: acknowledged images can be pulled, retries succeed, and verify finds no problem`,
      { timeout },
      async () => {
        await using platform = await start();
        const client = new RegistryClient(platform);
        const shared = RegistryClient.layer(200_000);
        const acknowledged: PushedImage[] = [];
        for (const [round, enoughPushes] of acknowledgedAtKill.entries()) {
          const images = Array.from({ length: concurrentPushes }, (_, i) =>
            client.image(`crash-${i % 5}`, `r${round}-${i}`, [shared, RegistryClient.layer(20_000 + 1_000 * i)]),
          );
          const before = acknowledged.length;
          // Resolves when some pushes have finished and others have not.
          const enough = Promise.withResolvers<void>();
          const killed = Promise.withResolvers<void>();
          const pushes = images.map(async (image, i) => {
            // The last push begins at the kill: on a busy machine, all others may have been answered by then.
            if (i === images.length - 1) await killed.promise;
            await client.push(image);
            acknowledged.push(image);
            if (acknowledged.length - before === enoughPushes) enough.resolve();
            return image;
          });
          const settled = Promise.allSettled(pushes);
          await Promise.race([enough.promise, Promise.all(pushes)]);
          await platform.kill();
          killed.resolve();
          const unfinished = (await settled).flatMap((push, i) => (push.status === 'rejected' ? [images[i]!] : []));
          await platform.restart();
          // Images of earlier rounds are pulled at the end.
          expect(await client.problemsWith(acknowledged.slice(before))).toEqual([]);
          // A tag whose push was not acknowledged may exist, but then its image must be complete.
          expect((await client.problemsWith(unfinished)).filter((problem) => problem !== 'no such tag')).toEqual([]);
          expect(await runBerth(platform, 'verify')).toMatchObject({
            code: 0,
            lines: [{ type: 'verified', problems: 0 }],
          });
          await Promise.all(unfinished.map(async (image) => await client.pushWithRetries(image)));
          acknowledged.push(...unfinished);
        }
        expect(await client.problemsWith(acknowledged)).toEqual([]);
      },
    );

    test(
      'killed during garbage collections: no tagged image is lost, and blobs of deleted images are removed in the end',
      { timeout },
      async () => {
        await using platform = await start({
          BERTH_COLLECT_EVERY_SECONDS: '1',
          BERTH_COLLECT_LEASE_SECONDS: '2',
          BERTH_COLLECT_WAIT_SECONDS: '0',
          BERTH_KEPT_UNTAGGED_IMAGES: '0',
        });
        const client = new RegistryClient(platform);
        const shared = RegistryClient.layer(50_000);
        const kept = client.image('kept', 'v1', [shared, RegistryClient.layer(30_000)]);
        await client.pushWithRetries(kept);
        for (const round of acknowledgedAtKill.keys()) {
          const deleted = Array.from({ length: 10 }, (_, i) =>
            client.image('deleted', `${round}-${i}`, [shared, RegistryClient.layer(10_000)]),
          );
          await Promise.all(deleted.map(async (image) => await client.pushWithRetries(image)));
          await Promise.all(deleted.map(async (image) => await client.delete(image)));
          // When the first blobs are deleted, a collection is running. Each poll checks another image, because checks of all would
          // keep a core busy.
          let polls = 0;
          const left = async () => {
            const { layers } = deleted[polls++ % deleted.length]!;
            return await client.count(layers.slice(1), 'deleted');
          };
          await expect.poll(left, { interval: 10 }).toBe(0);
          await platform.kill();
          await platform.restart();
          expect(await client.problemWith(kept)).toBeUndefined();
          for (const image of deleted.slice(0, 3)) {
            await client.pushWithRetries(image);
            await client.delete(image);
          }
          expect((await runBerth(platform, 'verify')).code).toBe(0);
        }
        await client.delete(kept);
        // Polls what clients see first, because each `berth verify` starts a process.
        await expect.poll(async () => await client.count(kept.layers, 'kept'), { interval: 250 }).toBe(0);
        await expect.poll(async () => await storedBlobs(platform), { timeout: 60_000, interval: 1_000 }).toBe(0);
      },
    );
  });
}
