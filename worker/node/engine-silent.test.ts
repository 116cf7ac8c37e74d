// Takes about 35 s
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openGatedPlatform } from '../testing/gated-platform.ts';
import type { GatedPlatform } from '../testing/gated-platform.ts';
import { eventually, polite, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import type { Worker } from '../worker.ts';

const why = await whyNoTests();

/** The requests that a deadlocked engine 20.10 does not answer: all that concern networks. */
const deadlocked = /^(?:\w+ \/networks|POST \/containers\/\w+\/(?:start|stop|kill)|DELETE \/containers)/;

describe.skipIf(why !== undefined)(`a worker whose engine stops answering ${why ?? ''}`, () => {
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

  const untilPingReports = async (problem: RegExp | undefined) => {
    await eventually(async () => {
      const reported = await worker.ping().then(
        () => undefined,
        (error: Error) => error.message,
      );
      return (problem === undefined ? reported === undefined : problem.test(reported ?? '')) || undefined;
    });
  };

  it('reports it, leaves new backends to other nodes, and continues when the engine answers', async () => {
    const imageDigest = await platform.images.add(polite);
    await platform.pull(imageDigest);
    await worker.ping();
    gate.silence(deadlocked);
    await untilPingReports(/has not answered for 10 seconds/);
    const notified = await platform.schedule({ imageDigest });
    const unnotified = await platform.schedule({ imageDigest }, false);
    // Each pass over all backends begins with a list of containers: one whole pass has been made.
    const passes = gate.asked(/^GET \/containers\/json/);
    await eventually(async () => gate.asked(/^GET \/containers\/json/) > passes + 1 || undefined);
    for (const id of [notified, unnotified]) {
      expect(await platform.get(id)).toMatchObject({ status: 'scheduled', live: true });
      expect((await platform.get(id)).node).toBeUndefined();
    }
    gate.open();
    await untilPingReports(undefined);
    await Promise.all([notified, unnotified].map((id) => platform.until(id, 'ready')));
    await Promise.all([notified, unnotified].map((id) => platform.end(id)));
  });

  it('closes in the middle of a start', async () => {
    const imageDigest = await platform.images.add(polite);
    await platform.pull(imageDigest);
    gate.silence(/^POST \/containers\/create/);
    const id = await platform.schedule({ imageDigest });
    await eventually(async () => gate.asked(/^POST \/containers\/create/) > 0 || undefined);
    await worker[Symbol.asyncDispose]();
    gate.open();
    worker = await fixture.openWorker();
    expect((await platform.until(id, 'ready')).history.map(({ status }) => status)).not.toContain('terminated');
    await platform.end(id);
  });
});

describe.skipIf(why !== undefined)(`calls to an engine that stops answering ${why ?? ''}`, () => {
  it('time out, so that a backend can be ended whose start gets no answer', async () => {
    // Longer than a busy engine takes for the network of the node.
    await using silent = await openGatedPlatform({ silenceMs: 10_000 });
    const { gate, platform } = silent;
    await silent.openWorker();
    const imageDigest = await platform.images.add(polite);
    await platform.pull(imageDigest);
    gate.silence(/^POST \/containers\/\w+\/start/);
    const id = await platform.schedule({ imageDigest });
    await eventually(async () => gate.asked(/^POST \/containers\/\w+\/start/) > 0 || undefined);
    await platform.stop(id, 'hard');
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'external', exitCode: null });
    expect(await platform.engine.engine.containers.list()).toEqual([]);
  });
});
