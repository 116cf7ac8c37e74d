// Takes about 15 s
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { EngineError } from '../docker/engine-error.ts';
import { openGatedPlatform } from '../testing/gated-platform.ts';
import type { GatedPlatform } from '../testing/gated-platform.ts';
import { eventually, polite, wait, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import type { Worker } from '../worker.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`a worker whose engine is down for a while ${why ?? ''}`, () => {
  let fixture: GatedPlatform;
  let gate: GatedPlatform['gate'];
  let platform: TestPlatform;
  let worker: Worker;
  beforeEach(async () => {
    fixture = await openGatedPlatform();
    ({ gate, platform } = fixture);
    worker = await fixture.openWorker();
  });
  afterEach(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  const containerOf = (id: string) => platform.containerOf(id);

  it('notices containers that exited meanwhile', async () => {
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    await platform.until(id, 'ready');
    gate.close();
    await containerOf(id).kill({ signal: 'SIGKILL' });
    await containerOf(id).wait();
    expect((await platform.get(id)).status).toBe('ready');
    gate.open();
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: null, exitCode: 137 });
  });

  it('continues starts and stops when the engine is back', async () => {
    const imageDigest = await platform.images.add(polite);
    const running = await platform.schedule({ imageDigest });
    await platform.until(running, 'ready');
    gate.close();
    const late = await platform.schedule({ imageDigest });
    // Claimed, unless the worker has checked its engine before: then it is claimed later.
    const isEngineAway = async () =>
      await worker.ping().then(
        () => undefined,
        () => true,
      );
    await eventually(async () => (await platform.get(late)).node ?? (await isEngineAway()));
    await platform.stop(running, 'soft');
    await platform.until(running, 'terminating');
    gate.open();
    expect((await platform.until(late, 'ready')).status).toBe('ready');
    const ended = await platform.until(running, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'soft', exitCode: 0 });
    await platform.end(late);
  });

  it('gives the whole grace time to a stop that the engine accepts late', async () => {
    await worker[Symbol.asyncDispose]();
    const clock = new ManualClock(new Date());
    platform.useClock(clock);
    worker = await fixture.openWorker({ clock });
    const imageDigest = await platform.images.add(`trap "sleep 0.5; exit 7" TERM; httpd -p $PORT; ${wait}`);
    const id = await platform.schedule({ imageDigest });
    await platform.until(id, 'ready', clock);
    gate.close();
    await platform.stop(id, 'soft');
    await platform.until(id, 'terminating', clock);
    await clock.advance(120_000);
    gate.open();
    const ended = await platform.until(id, 'terminated', clock);
    expect(ended.history.at(-1)).toMatchObject({ terminationKind: 'soft', exitCode: 7 });
  });

  it('repeats a pull when the engine is back', async () => {
    const release = Promise.withResolvers<void>();
    platform.images.holdLayers(release.promise);
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    await eventually(async () => (platform.images.heldRequests > 0 ? true : undefined));
    gate.close();
    release.resolve();
    gate.open();
    expect((await platform.until(id, 'ready')).status).toBe('ready');
    await platform.end(id);
  });

  it('cancels a start in the middle, and leaves no container behind', async () => {
    const imageDigest = await platform.images.add(polite);
    await platform.pull(imageDigest);
    const id = await platform.schedule({ imageDigest });
    await platform.until(id, 'starting');
    gate.close();
    gate.open();
    expect((await platform.until(id, 'ready')).status).toBe('ready');
    expect(await platform.engine.engine.containers.list()).toHaveLength(1);
    const { address } = await platform.get(id);
    expect((await fetch(`http://${address?.host}:${address?.port}/`)).status).toBe(404);
    await platform.end(id);
  });

  it('continues with a container that an attempt without an answer has started', async () => {
    const { engine } = platform.engine;
    let startedFirst: string | undefined;
    const start = engine.containers.start.bind(engine.containers);
    const silentOnce = async (container: string) => {
      await start(container);
      if (startedFirst !== undefined) return;
      startedFirst = container;
      throw new EngineError('unavailable', 'EOF');
    };
    vi.spyOn(engine.containers, 'start').mockImplementation(silentOnce);
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    const started = await eventually(async () => startedFirst);
    await platform.until(id, 'ready');
    expect((await containerOf(id).inspect()).Id).toBe(started);
    await platform.end(id);
  });

  it('does not publish the end of a backend that may have started before its container is removed', async () => {
    const imageDigest = await platform.images.add(polite);
    // The first start finds out which limits this engine can set.
    const first = await platform.schedule({ imageDigest });
    await platform.until(first, 'ready');
    await platform.end(first);
    const start = /^POST \/containers\/\w+\/start/;
    const starts = gate.asked(start);
    gate.silence(start);
    const id = await platform.schedule({ imageDigest });
    await eventually(async () => (gate.asked(start) > starts ? true : undefined));
    await platform.until(id, 'starting');
    gate.close();
    await platform.stop(id, 'hard');
    await platform.until(id, 'hard-terminating');
    // As if the engine's answer was lost.
    await containerOf(id)
      .start()
      .catch(() => {});
    expect((await containerOf(id).inspect()).State.Running).toBe(true);
    expect((await platform.get(id)).live).toBe(true);
    gate.open();
    await platform.until(id, 'terminated');
    await expect(containerOf(id).inspect()).rejects.toThrow('no such container');
  });
});
