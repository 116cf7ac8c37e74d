// Takes about 25 s
/**
 * Pushers that share layers, mount, move tags and delete, during continuous garbage collection with leases of seconds: no
 * acknowledged image is ever missing before its deletion, and when all images are deleted, all blobs are removed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { storedBlobs } from '../kit/platform/berth-command.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import type { TestDrivers } from '../kit/servers/drivers.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { RegistryClient } from '../kit/platform/registry-client.ts';
import type { PushedImage } from '../kit/platform/registry-client.ts';

/** Short, for runs of all tests; a test also runs until enough was collected. `BERTH_TEST_SOAK_SECONDS=600` tests for ten minutes. */
const soakMs = Number(process.env['BERTH_TEST_SOAK_SECONDS'] ?? '3') * 1000;

/** The least number of pushes, however busy the machine is. */
const minPushes = 30;

const pushers = 6;

/** The pause between requests of a pusher or a reader. Collections continue in it, and find new content after each push. */
const pauseMs = 50;

const services = ['soak-a', 'soak-b', 'soak-c'];
const tagsPerPusher = 2;

/** Leases as short as pushes on a busy machine allow. A push whose content was collected is retried. */
const settings = {
  BERTH_COLLECT_EVERY_SECONDS: '1',
  BERTH_COLLECT_LEASE_SECONDS: '2',
  BERTH_COLLECT_WAIT_SECONDS: '0',
  BERTH_KEPT_UNTAGGED_IMAGES: '0',
};

/** Second processes need an engine's address, but no engine. */
const noEngine = { kind: 'stable', host: 'unix:///dev/null/no-engine.sock', version: '' } as const;

async function open(drivers: TestDrivers): Promise<TestPlatform> {
  if (drivers === 'embedded') return await startPlatform({ drivers, settings });
  return await startPlatform({ drivers, settings, twinsOn: noEngine, only: ['registry', 'registry2', 'api'] });
}

/** A client for each registry process. */
function clientsOf(platform: TestPlatform): RegistryClient[] {
  const names = platform.processNames.filter((name) => name === 'registry2');
  const others = names.map((name) => platform.announcedBy(name).registry);
  const { account, token } = platform;
  return [platform.registry, ...others].map((registry) => new RegistryClient({ registry, account, token }));
}

function pick<T>(list: readonly T[]): T {
  return list[Math.floor(Math.random() * list.length)] as T;
}

/** The images that must exist: acknowledged, and neither deleted nor being replaced. */
class Held {
  readonly #images = new Map<string, PushedImage>();
  readonly problems: string[] = [];
  pushes = 0;
  checks = 0;

  get all(): PushedImage[] {
    return [...this.#images.values()];
  }

  release({ repository, tag }: PushedImage): PushedImage | undefined {
    const before = this.#images.get(`${repository}:${tag}`);
    this.#images.delete(`${repository}:${tag}`);
    return before;
  }

  hold(image: PushedImage): void {
    this.pushes += 1;
    this.#images.set(`${image.repository}:${image.tag}`, image);
  }

  async check(client: RegistryClient, image: PushedImage): Promise<void> {
    const problem = await client.problemWith(image);
    // It may have been released meanwhile.
    if (this.#images.get(`${image.repository}:${image.tag}`) !== image) return;
    this.checks += 1;
    if (problem !== undefined) this.problems.push(problem);
  }
}

for (const drivers of testDrivers()) {
  describe(`collected ${drivers === 'embedded' ? 'in one process' : 'by two registries on MongoDB and GridFS'}`, () => {
    test(
      'no image is lost by pushes, mounts, moved tags and deletions during continuous garbage collection',
      { timeout: soakMs + 180_000 },
      async () => {
        await using platform = await open(drivers);
        const clients = clientsOf(platform);
        const held = new Held();
        const shared = Array.from({ length: 5 }, (_, i) => RegistryClient.layer(20_000 + i));
        const endMs = performance.now() + soakMs;
        let hasCollected = false;
        const isEnough = () => performance.now() > endMs && held.pushes >= minPushes && hasCollected;
        const isFinished = () => isEnough() || held.problems.length > 0;
        const watch = async () => {
          for (; !isFinished(); await sleep(200)) hasCollected ||= await collectedDuringPushes(platform);
        };

        const push = async (pusher: number) => {
          for (let n = 0; !isFinished(); n += 1) {
            await sleep(pauseMs);
            const [client, service] = [pick(clients), pick(services)];
            const layers = [pick(shared), pick(shared), RegistryClient.layer(5_000 + (n % 2))];
            const image = client.image(service, `p${pusher}-${n % tagsPerPusher}`, layers);
            const before = held.release(image);
            if (before && Math.random() < 0.3) await client.delete(before);
            const mountFrom = Math.random() < 0.4 ? `${platform.account}/${pick(services)}` : undefined;
            await client.pushWithRetries(image, mountFrom);
            held.hold(image);
            await held.check(pick(clients), image);
          }
        };
        const read = async () => {
          while (!isFinished()) {
            const image = pick(held.all);
            if (image) await held.check(pick(clients), image);
            await sleep(pauseMs);
          }
        };
        await Promise.all([...Array.from({ length: pushers }, (_, i) => push(i)), read(), read(), watch()]);
        for (const image of held.all) await held.check(pick(clients), image);
        expect(held.problems).toEqual([]);
        expect(held.checks).toBeGreaterThan(held.pushes);
        expect(await collectedDuringPushes(platform)).toBe(true);

        for (const image of held.all) await clients[0]?.delete(image);
        // Polls what clients see first, because each `berth verify` starts a process.
        const seen = async () =>
          await Promise.all(services.map(async (service) => await clients[0]?.count(shared, service)));
        await expect.poll(seen, { timeout: 60_000, interval: 250 }).toEqual(services.map(() => 0));
        await expect.poll(async () => await storedBlobs(platform), { timeout: 60_000, interval: 1_000 }).toBe(0);
      },
    );
  });
}

/** Whether more than one collection was completed, and manifests and blobs were deleted. */
async function collectedDuringPushes(platform: TestPlatform): Promise<boolean> {
  const [runs, manifests, blobs] = await Promise.all([
    metric(platform, /collection_runs_total\{outcome="done"\} (\d+)/),
    metric(platform, /collected_total\{what="manifests"\} (\d+)/),
    metric(platform, /collected_total\{what="blobs"\} (\d+)/),
  ]);
  return runs > 1 && manifests > 0 && blobs > 0;
}

/** The sum of a metric over all registries. */
async function metric(platform: TestPlatform, pattern: RegExp): Promise<number> {
  const names = platform.processNames.filter((name) => name.startsWith('registry'));
  const texts = await Promise.all(
    names.map(async (name) => await (await fetch(`${platform.announcedBy(name).operations_url}/metrics`)).text()),
  );
  return texts.reduce((sum, text) => sum + Number(pattern.exec(text)?.[1] ?? 0), 0);
}
