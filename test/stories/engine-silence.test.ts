// Takes about 40 s
/** A Docker Engine that stops answering: the node reports it, sessions continue, and the worker needs no restart. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canStartEngines, startEngine, withoutFirewall } from '../kit/engines/docker-engine.ts';
import type { RunningEngine } from '../kit/engines/docker-engine.ts';
import { Fixture } from './fixture.ts';

// Needs its own engine, because other tests use the others.
const canStart = await canStartEngines();
const why = canStart ? '' : ' (skipped: no Docker Engine can be started here)';

/** The worker checks every five seconds, and waits up to ten for the answer. */
const soon = { interval: 500, timeout: 60_000 };

describe.skipIf(!canStart)(`a platform whose Docker Engine stops answering${why}`, () => {
  let engine: RunningEngine;
  let thaw = () => {};
  beforeAll(async () => {
    engine = await startEngine('stable', withoutFirewall);
  });
  afterAll(async () => {
    thaw();
    await engine?.[Symbol.asyncDispose]();
  });

  async function readiness({ platform }: Fixture): Promise<{ status: number; worker: string }> {
    const answer = await fetch(`${platform.operationsUrl}/readyz`);
    const { checks } = (await answer.json()) as { checks: { worker: string } };
    return { status: answer.status, worker: checks.worker };
  }

  const linesOf = ({ platform }: Fixture, words: string) =>
    platform.log.split('\n').filter((line) => line.includes(words)).length;

  test('/readyz fails and reports what to do; sessions continue; scheduled backends start later', async () => {
    await using fixture = await Fixture.open({ engine, drivers: 'embedded' });
    await fixture.push('serve');
    const before = await fixture.connectReady('serve');
    expect(await readiness(fixture)).toEqual({ status: 200, worker: 'ok' });
    thaw = await engine.freeze();
    await expect
      .poll(async () => await readiness(fixture), soon)
      .toEqual({
        status: 503,
        worker: expect.stringMatching(
          /^The Docker Engine of this node has not answered .*restart the engine$/,
        ) as string,
      });
    const during = await fixture.connect('serve');
    expect((await fetch(before.url)).status).toBe(200);
    expect((await fixture.backend(during)).statuses.map(({ status }) => status)).toEqual(['scheduled']);
    await expect.poll(() => linesOf(fixture, 'Docker Engine does not answer'), soon).toBe(1);
    thaw();
    expect((await fetch(during.url)).status).toBe(200);
    await expect.poll(async () => await readiness(fixture), soon).toEqual({ status: 200, worker: 'ok' });
    await expect.poll(() => linesOf(fixture, 'Docker Engine answers again'), soon).toBe(1);
  });

  test('a platform starts without an answer of the engine, and has a worker as soon as the engine answers', async () => {
    await using fixture = await Fixture.open({ engine, drivers: 'embedded' });
    await fixture.push('serve');
    await fixture.platform.stop();
    thaw = await engine.freeze();
    await fixture.platform.restart();
    expect(await readiness(fixture)).toEqual({
      status: 503,
      worker: `No Docker Engine answers at ${engine.host}: start it, or set DOCKER_HOST to its socket`,
    });
    const connection = await fixture.connect('serve');
    thaw();
    expect((await fetch(connection.url)).status).toBe(200);
    expect((await readiness(fixture)).status).toBe(200);
  });
});
