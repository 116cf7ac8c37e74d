// Takes about 10 s
/** An untagged image is spawned during garbage collection: either the spawn succeeds and the image is kept, or it is rejected. */
import { expect, test } from 'vitest';
import { openApi } from '../../api/index.ts';
import { purgeRepository } from '../../registry/index.ts';
import { spawnRules } from '../../api/testing/spawn-rules.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { listen, newServer } from '../../core/http/listener.ts';
import { silentLog } from '../../core/log/log.ts';
import { openMetrics } from '../../core/metrics/metrics.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { openInProcessQueue } from '../../core/queue/in-process.ts';
import { PasswordHashes, recommendedCosts } from '../../core/secret/password-hash.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import { backends } from '../../model/backend.ts';
import { services } from '../../model/service.ts';
import { collect } from '../kit/registry/garbage-collection.ts';
import { openTestRegistry, pushImage, sendTo, withPauses } from '../kit/registry/registry.ts';

const repository = 'acme/draw';
const leaseSeconds = 24 * 3_600;
const leaseMs = leaseSeconds * 1000;

/** Runs a function before the n-th call of the store or the blobs. */
class Interruption {
  #left = Infinity;
  #run: (() => Promise<void>) | undefined;

  at(step: number, run: () => Promise<void>): void {
    this.#left = step;
    this.#run = run;
  }

  async beforeCall(): Promise<void> {
    if (!this.#run || this.#left-- > 0) return;
    const run = this.#run;
    this.#run = undefined;
    await run();
  }

  /** Whether the n-th call happened. */
  get hasRun(): boolean {
    return this.#run === undefined;
  }
}

/** A registry and the API on one store, and an interruption of each. */
async function open() {
  await using opening = new AsyncDisposableStack();
  const clock = new ManualClock(new Date());
  const ofRegistry = new Interruption();
  const ofApi = new Interruption();
  const gc = { everyMs: 1_000_000 * leaseMs, leaseMs, removalWaitMs: 0, keptUntaggedImages: 0 };
  const beforeCall = async () => await ofRegistry.beforeCall();
  const registry = opening.use(await openTestRegistry({ clock, gc, beforeCall }));
  const log = silentLog();
  const api = opening.use(
    await openApi({
      store: withPauses(registry.store, async () => await ofApi.beforeCall()),
      // A separate clock, so that nothing in the API times out.
      clock: new ManualClock(clock.now()),
      queue: opening.use(openInProcessQueue({ clock, log })),
      bus: opening.use(openInProcessBus({ log })),
      tokens: registry.tokens,
      passwords: new PasswordHashes(recommendedCosts),
      log,
      metrics: openMetrics(),
      archives: undefined,
      purgeRepository: (repository, before) => purgeRepository(registry.store, repository, before),
      behindLoadBalancer: false,
      invalidTokensPerMinute: 0,
      oidcIssuers: [],
      accountLimits: { connectsPerSecond: 0, runningBackends: 0 },
      urls: { api: 'http://api.example', proxy: 'http://sessions.example', registryHost: 'registry.example' },
      rules: { ...spawnRules, imageLeaseSeconds: leaseSeconds },
      secret: new PlatformSecret(Buffer.alloc(32, 1)),
      tokenFor: (source) => source,
      secretFor: (token) => token,
    }),
  );
  const server = newServer();
  server.on('request', (request, response) => void api.handle(request, response));
  const { port } = opening.use(await listen(server, { host: '127.0.0.1', port: 0, drainMs: 100 }));
  const token = await registry.addToken('acme', ['connect', 'push', 'deploy']);
  const post = async (path: string, body: object) =>
    await sendTo(port, path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const kept = opening.move();
  return { clock, registry, post, ofRegistry, ofApi, [Symbol.asyncDispose]: async () => await kept.disposeAsync() };
}

type Fixture = Awaited<ReturnType<typeof open>>;

/** An image that lost its tag, and whose lease has expired. */
async function prepareOldImage({ registry, clock }: Fixture): Promise<string> {
  const { digest } = await pushImage(registry, { repository, reference: 'latest' }, { labels: { version: 'old' } });
  await pushImage(registry, { repository, reference: 'latest' }, { labels: { version: 'new' } });
  await clock.advance(2 * leaseMs);
  return digest;
}

/** Asserts that the image can be pulled, now and after its lease. */
async function expectKept(fixture: Fixture, digest: string, step: number): Promise<void> {
  await expectPullable(fixture, digest, step);
  await fixture.clock.advance(2 * leaseMs);
  await collect(fixture.registry);
  await expectPullable(fixture, digest, step);
}

async function expectPullable({ registry }: Fixture, digest: string, step: number): Promise<void> {
  const manifest = await registry.as(`/v2/${repository}/manifests/${digest}`);
  expect([step, manifest.status]).toEqual([step, 200]);
  const { config, layers } = JSON.parse(manifest.body.toString()) as { config: Part; layers: Part[] };
  for (const part of [config, ...layers]) {
    const { status } = await registry.as(`/v2/${repository}/blobs/${part.digest}`);
    expect([step, status]).toEqual([step, 200]);
  }
}

interface Part {
  readonly digest: string;
}

/** Removes the backends and the service, and collects the images. */
async function clean({ registry, clock }: Fixture): Promise<void> {
  for (const { id } of await registry.store.find(backends, { index: 'byAccount', equals: { account: 'acme' } })) {
    await registry.store.delete(backends, id);
  }
  await registry.store.delete(services, repository);
  await clock.advance(2 * leaseMs);
  await collect(registry);
}

/** Requests that keep the image. */
const requests: Readonly<Record<string, (fixture: Fixture, digest: string) => Promise<boolean>>> = {
  'is spawned': async ({ post }, tag) =>
    (await post(`/v2/service/${repository}/connect`, { spawn: { tag } })).status === 200,
  'becomes that of an environment': async ({ post }, tag) =>
    (await post(`/v2/service/${repository}/update`, { image_tag: tag })).status === 200,
};

for (const [what, send] of Object.entries(requests)) {
  test(`an old image ${what} at any step of a collection`, { timeout: 300_000 }, async () => {
    await using fixture = await open();
    let acknowledged = 0;
    for (let step = 0; ; step += 1) {
      const digest = await prepareOldImage(fixture);
      let wasAcknowledged = false;
      fixture.ofRegistry.at(step, async () => void (wasAcknowledged = await send(fixture, digest)));
      await collect(fixture.registry);
      if (!fixture.ofRegistry.hasRun) break;
      if (wasAcknowledged) {
        acknowledged += 1;
        await expectKept(fixture, digest, step);
      }
      await clean(fixture);
    }
    expect(acknowledged).toBeGreaterThan(5);
  });

  test(`a collection at any step in which an old image ${what}`, { timeout: 300_000 }, async () => {
    await using fixture = await open();
    let acknowledged = 0;
    for (let step = 0; ; step += 1) {
      const digest = await prepareOldImage(fixture);
      fixture.ofApi.at(step, async () => void (await collect(fixture.registry)));
      const wasAcknowledged = await send(fixture, digest);
      if (!fixture.ofApi.hasRun) break;
      if (wasAcknowledged) {
        acknowledged += 1;
        await expectKept(fixture, digest, step);
      }
      await clean(fixture);
    }
    expect(acknowledged).toBeGreaterThan(0);
  });
}
