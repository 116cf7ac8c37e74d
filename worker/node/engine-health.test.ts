import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog } from '../../core/log/log.ts';
import { EngineHealth } from './engine-health.ts';
import { openEngineGate } from '../testing/engine-gate.ts';
import type { EngineGate } from '../testing/engine-gate.ts';
import { openTestEngine, testEngineHost, whyNoEngine } from '../testing/test-engine.ts';
import type { TestEngine } from '../testing/test-engine.ts';
import { eventually } from '../testing/test-platform.ts';

const why = await whyNoEngine();

describe.skipIf(why !== undefined)(`the health of an engine ${why ?? ''}`, () => {
  let gate: EngineGate;
  let engine: TestEngine;
  let health: EngineHealth;
  let clock: ManualClock;
  let lines: { level: string; msg: string; err?: { message: string } }[];
  let changes: boolean[];
  let answers: number;
  /** The checks that the engine has not answered yet. */
  let waiting: number;
  beforeEach(async () => {
    gate = await openEngineGate(testEngineHost);
    engine = await openTestEngine(`test-${randomBytes(5).toString('hex')}`, gate.host);
    clock = new ManualClock();
    lines = [];
    changes = [];
    const log = openLog('info', { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]) });
    answers = 0;
    waiting = 0;
    const ping = async (signal: AbortSignal) => {
      waiting += 1;
      try {
        await engine.engine.ping(signal);
        answers += 1;
      } finally {
        waiting -= 1;
      }
    };
    health = new EngineHealth({ engine: { ping }, clock, log });
    health.onChange(() => changes.push(health.problem === undefined));
  });
  afterEach(async () => {
    gate?.open();
    await health?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
    await gate?.[Symbol.asyncDispose]();
  });

  /** Resolves when the health has changed this many times. The clock is not advanced while a check waits for an engine that answers. */
  const untilChanged = async (times: number, { isSilent = false } = {}) => {
    await eventually(async () => {
      if (changes.length >= times) return true;
      if (isSilent || waiting === 0) await clock.advance(1_000);
      return undefined;
    });
  };

  it('is checked repeatedly, and nothing is logged while the engine answers', async () => {
    for (let asked = 1; asked <= 5; asked += 1) {
      await clock.advance(5_000);
      await eventually(async () => answers === asked || undefined);
    }
    expect([health.problem, changes, lines]).toEqual([undefined, [], []]);
  });

  it('is bad while requests for networks get no answer, although all other requests do, and good again afterwards', async () => {
    gate.silence(/^GET \/networks\?/);
    await untilChanged(1, { isSilent: true });
    expect(health.problem?.message).toMatch(
      /has not answered for 10 seconds, so no backend is started here; .*restart/,
    );
    expect(await engine.engine.containers.list()).toEqual([]);
    const asked = gate.asked(/networks/);
    await eventually(async () => {
      await clock.advance(1_000);
      return gate.asked(/networks/) > asked + 2 || undefined;
    });
    gate.open();
    await untilChanged(2);
    expect([health.problem, changes]).toEqual([undefined, [false, true]]);
    // Once for each change, however often it was checked.
    expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
      'error: Docker Engine does not answer, no backends are claimed until it does',
      'info: Docker Engine answers again',
    ]);
    expect(lines[0]?.err?.message).toContain('10 seconds');
  });

  it('is bad at once if no engine listens', async () => {
    gate.close();
    await clock.advance(5_000);
    await eventually(async () => changes.length > 0 || undefined);
    expect(health.problem?.message).toContain('The Docker Engine of this node does not answer, so');
  });
});
