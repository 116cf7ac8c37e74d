import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { Deployments } from './deployments.ts';
import type { DevEvent } from './report.ts';

/** Deployments whose builds each take half a second of the clock, and result in another image. */
function fixture() {
  const clock = new ManualClock();
  const ending = new AbortController();
  const events: DevEvent[] = [];
  let builds = 0;
  const deployments = new Deployments({
    clock,
    report: (event) => void events.push(event),
    build: async (signal) => {
      await clock.sleep(500, signal);
      builds += 1;
      return `sha256:${builds}`;
    },
    serve: async () => {},
  });
  const running = deployments.run(ending.signal);
  const end = async () => {
    ending.abort();
    await running;
  };
  return { clock, deployments, events, [Symbol.asyncDispose]: end };
}

test('the time of a build is measured with the clock', async () => {
  await using dev = fixture();
  await dev.clock.advance(500);
  expect(dev.events).toEqual([{ event: 'build-started' }, { event: 'serving', digest: 'sha256:1', seconds: 0.5 }]);
});

test('a build starts 150 ms after the last change', async () => {
  await using dev = fixture();
  await dev.clock.advance(500);
  dev.deployments.change('one.js');
  await dev.clock.advance(100);
  dev.deployments.change('two.js');
  await dev.clock.advance(149);
  expect(dev.events.at(-1)).toMatchObject({ event: 'serving' });
  await dev.clock.advance(1);
  expect(dev.events.slice(-2)).toEqual([{ event: 'changed', path: 'one.js', more: 1 }, { event: 'build-started' }]);
});

test('a build starts after two seconds although files keep changing', async () => {
  await using dev = fixture();
  await dev.clock.advance(500);
  for (let waitedMs = 0; waitedMs < 2_000; waitedMs += 100) {
    expect(dev.events.at(-1)).toMatchObject({ event: 'serving' });
    dev.deployments.change('log.txt');
    await dev.clock.advance(100);
  }
  expect(dev.events.at(-1)).toEqual({ event: 'build-started' });
});
