// Takes about 10 s
import type { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backendChanged } from '../../contract/messages.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { linesOf } from '../../core/text/lines.ts';
import { assign, backends } from '../../model/backend.ts';
import { nodes } from '../../model/node.ts';
import { NodeNameError } from '../node/node-identity.ts';
import { isRemoved } from '../testing/fixture.ts';
import { eventually, openTestPlatform, polite, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`the next holder of a key ${why ?? ''}`, () => {
  let platform: TestPlatform;
  let clock: ManualClock;
  let imageDigest: string;
  beforeEach(async () => {
    platform = await openTestPlatform();
    clock = new ManualClock(new Date());
    imageDigest = await platform.images.add(polite);
  });
  afterEach(async () => {
    await platform?.[Symbol.asyncDispose]();
  });

  /** Schedules a backend that holds the key `room`, as a connect does that finds the key free. */
  async function nextHolder(): Promise<string> {
    return await platform.schedule({ imageDigest, ...(await platform.claim('room')) });
  }

  /** Schedules a backend without a key, and waits until it runs: every other backend that may start has started by then. */
  async function untilOthersStart(): Promise<void> {
    const id = await platform.schedule({ imageDigest });
    const list = () => platform.engine.engine.containers.list();
    const isRunning = async () => (await list()).some(({ backend, phase }) => backend === id && phase === 'running');
    await eventually(async () => ((await isRunning()) ? true : undefined));
  }

  /** Follows which containers start and die: the engine keeps only its last 256 events, of all tests. */
  async function followStartsAndEnds(): Promise<{ of(...ids: string[]): string[] } & Disposable> {
    const filters = { label: [`berth.node=${platform.node}`], event: ['start', 'die'] };
    // The engine answers a moment before it listens, and replays earlier events.
    const stream = (await platform.engine.docker.getEvents({ since: 0, filters })) as unknown as Readable;
    const seen: { action: string; backend: string }[] = [];
    const read = async () => {
      for await (const line of linesOf(stream)) {
        if (line.trim() === '') continue;
        const { Action, Actor } = JSON.parse(line) as { Action: string; Actor: { Attributes: Record<string, string> } };
        seen.push({ action: Action, backend: Actor.Attributes['berth.backend'] ?? '' });
      }
    };
    read().catch(() => {});
    return {
      of: (...ids) =>
        seen.filter(({ backend }) => ids.includes(backend)).map(({ action, backend }) => `${action} ${backend}`),
      [Symbol.dispose]: () => void stream.destroy(),
    };
  }

  it('starts when the previous holder is gone from this node, even if the store says that it ended long ago', async () => {
    using events = await followStartsAndEnds();
    await using _worker = await platform.openWorker({ clock });
    const first = await nextHolder();
    await platform.until(first, 'ready', clock);
    await platform.declareLost(first);
    const second = await nextHolder();
    await untilOthersStart();
    await platform.until(second, 'ready', clock);
    await expect.poll(() => events.of(first, second)).toEqual([`start ${first}`, `die ${first}`, `start ${second}`]);
  });

  it('starts when the previous holder is gone, also after a restart of the worker', async () => {
    using events = await followStartsAndEnds();
    let first: string;
    {
      await using _worker = await platform.openWorker({ clock });
      first = await nextHolder();
      await platform.until(first, 'ready', clock);
    }
    await platform.declareLost(first);
    const second = await nextHolder();
    await platform.store.update(backends, second, (backend) => assign(backend, platform.node));
    await using _worker = await platform.openWorker({ clock });
    await untilOthersStart();
    await platform.until(second, 'ready', clock);
    await expect.poll(() => events.of(first, second)).toEqual([`start ${first}`, `die ${first}`, `start ${second}`]);
  });

  it('does not wait for the next pass: an end that another component writes stops the backend at once', async () => {
    await using _worker = await platform.openWorker({ clock });
    const first = await nextHolder();
    await platform.until(first, 'ready', clock);
    await platform.declareLost(first);
    await platform.bus.publish(backendChanged, { backend: first, status: 'terminated' });
    // The clock is stopped, and so is every pass.
    expect(await eventually(() => isRemoved(platform, first))).toBe(true);
  });

  it('finds its node alive: a heartbeat is due as soon as the time of day has reached it', async () => {
    await using _worker = await platform.openWorker({ clock });
    const leaseUntil = async () => (await platform.store.get(nodes, platform.node))?.leaseUntil.getTime() ?? 0;
    const before = await leaseUntil();
    clock.set(60_000);
    await clock.advance(1_000);
    const isRenewed = async () => ((await leaseUntil()) > before ? true : undefined);
    expect(await eventually(isRenewed)).toBe(true);
  });

  it('reports that another worker writes heartbeats under the name of its node, until that has ended', async () => {
    await using worker = await platform.openWorker({ clock });
    await platform.store.update(nodes, platform.node, (node) => ({ ...node, startedAt: new Date(0) }));
    const problem = async () =>
      await worker.ping().then(
        () => undefined,
        (error: unknown) => error,
      );
    const reachNextHeartbeat = async () => {
      clock.set(60_000);
      await clock.advance(1_000);
    };
    await reachNextHeartbeat();
    expect(await eventually(problem)).toBeInstanceOf(NodeNameError);
    const hasEnded = async () => {
      await reachNextHeartbeat();
      return (await problem()) === undefined ? true : undefined;
    };
    expect(await eventually(hasEnded)).toBe(true);
  });
});
