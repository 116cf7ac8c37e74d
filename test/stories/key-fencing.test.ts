// Takes about 110 s
/**
 * Two nodes, and a key whose holder's node loses its worker, its engine or both, killed or frozen. Records that the holders write
 * show that the old one had ended before the new one started.
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectRequest, ConnectResponse } from '../../contract/connect.ts';
import { leaseMs } from '../../model/key.ts';
import { connect, connectReady, terminate, waitFor } from '../kit/platform/api-client.ts';
import { startEngine, withoutFirewall } from '../kit/engines/docker-engine.ts';
import type { RunningEngine, TestEngine } from '../kit/engines/docker-engine.ts';
import { containersOf } from '../kit/engines/engine-client.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { testImage } from '../kit/engines/images.ts';
import type { Behaviour } from '../kit/engines/images.ts';
import { storeAndPull } from '../kit/engines/stored-images.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { PlatformOptions } from '../kit/platform/environments.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { shiftedClock } from '../kit/machine/shifted-clock.ts';
import { onlyIf } from './fixture.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import type { TemporaryFolder } from '../kit/machine/temporary-folder.ts';

const drivers = testDrivers().find((each) => each !== 'embedded');

/** A lease, and the time until the API declares a node dead, on a busy machine. */
const successionMs = 4 * leaseMs;

/** What happens to a worker or an engine. */
const faults = ['killed', 'frozen'] as const;
type Fault = (typeof faults)[number];

const [first] = testEngines();

const canShiftClocks = (await shiftedClock(600)) !== undefined;

/** Clocks that are wrong in both directions. The engine does not use them, so tests use one engine. */
const wrongClocks = { worker: 600, worker2: -600 };

/**
 * By default, each fault of a worker and of an engine is tested on one engine, and each engine with both kinds of faults.
 * `BERTH_TEST_EVERY_CASE=1` also tests every combination of fault, engine and clocks, all of which take the same code paths.
 */
const hasEveryCase = process.env['BERTH_TEST_EVERY_CASE'] === '1';

interface Case {
  readonly fault: Fault;
  readonly what: string;
  readonly clocks: NonNullable<PlatformOptions['clocks']>;
}

/** Faults of a worker: on the first engine with correct clocks and, if the test can set them, with wrong ones. */
function workerFaultsOn(engine: TestEngine): Case[] {
  const right = faults.map((fault): Case => ({ fault, what: 'its worker', clocks: {} }));
  const wrong = faults.map((fault): Case => ({
    fault,
    what: 'its worker, whose clock is wrong,',
    clocks: wrongClocks,
  }));
  const isFirst = engine.kind === first?.kind;
  if (hasEveryCase) return isFirst && canShiftClocks ? [...right, ...wrong] : right;
  return right.flatMap((each, i) => {
    if (!isFirst) return each.fault === 'killed' ? [each] : [];
    return each.fault === 'frozen' && canShiftClocks ? [wrong[i]!] : [each];
  });
}

/** Faults of an engine together with its worker. */
function engineFaultsOn(engine: TestEngine): Fault[] {
  if (hasEveryCase) return [...faults];
  return engine.kind === first?.kind ? ['killed'] : ['frozen'];
}

/** The engines that tests break, one for each fault. They start one after the other because they share a firewall. */
const breakable = new Map<string, RunningEngine>();
const opened = new AsyncDisposableStack();

/** The API and the registry of all stories, which no test breaks. Each story has its own nodes. */
let platform: TestPlatform;

beforeAll(async () => {
  if (!drivers) return;
  platform = opened.use(await startPlatform({ drivers, only: ['registry,api'] }));
  for (const engine of testEngines()) {
    for (const fault of engineFaultsOn(engine))
      breakable.set(`${engine.kind} ${fault}`, opened.use(await startEngine(engine.kind, withoutFirewall)));
  }
}, 240_000);

afterAll(() => opened.disposeAsync(), 240_000);

for (const engine of testEngines()) {
  const other = testEngines().find(({ kind }) => kind !== engine.kind);
  const breakableEngine = (fault: Fault) => breakable.get(`${engine.kind} ${fault}`) as RunningEngine;

  describe.skipIf(!drivers || !other).concurrent(`the holder of a key on Docker Engine ${engine.version}`, () => {
    test.for(workerFaultsOn(engine))(
      'has a successor only after its end when $what is $fault',
      { timeout: successionMs },
      async (each) => {
        const { fault, clocks } = each;
        await using story = await Story.open(engine, other, { clocks });
        const old = await story.holder();
        const repair = await story.breakWorker(fault);
        try {
          await story.untilSucceeded(old);
          expect(await story.gapSeconds()).toBeGreaterThan(0);
        } finally {
          await repair();
        }
        expect(await story.gapSeconds()).toBeGreaterThan(0);
      },
    );

    // Two platforms have nodes on one engine: the first also loses its worker, the second is asked to stop the holder.
    const engineFaults = engineFaultsOn(engine);
    test.for(engineFaults)(
      'has a successor only after its end when its engine is %s',
      { timeout: successionMs },
      async (fault) => {
        const broken = breakableEngine(fault);
        await using withWorker = await Story.open(broken, other);
        await using stopped = await Story.open(broken, other);
        const stories = [withWorker, stopped];
        const [worked, asked] = [await withWorker.holder(), await stopped.holder()];
        const repairWorker = await withWorker.breakWorker(fault);
        const repairEngine = await breakEngine(broken, fault);
        const gaps = async () => await Promise.all(stories.map((story) => story.gapSeconds()));
        try {
          await stopped.stopWithoutEngine(asked);
          await Promise.all([withWorker.untilSucceeded(worked), stopped.untilSucceeded(asked)]);
          expect(Math.min(...(await gaps()))).toBeGreaterThan(0);
        } finally {
          await repairEngine();
          await repairWorker();
        }
        expect(Math.min(...(await gaps()))).toBeGreaterThan(0);
      },
    );

    test.for(onlyIf(hasEveryCase || engine.kind === first?.kind))(
      'is found ended by a worker that was down for longer than the lease',
      { timeout: successionMs },
      async () => {
        await using story = await Story.open(engine, undefined, { behaviour: 'serve' });
        const old = await story.holder();
        await story.nodes.kill(['worker']);
        while ((await containersOf(engine, old.backend_id)).length > 0) await delay(500);
        await story.nodes.restart(['worker']);
        expect(await waitFor(platform, old.backend_id, 'terminated')).toMatchObject({
          termination_reason: 'keyexpired',
          termination_kind: 'soft',
        });
      },
    );
  });
}

async function breakEngine(engine: RunningEngine, fault: Fault): Promise<() => Promise<void>> {
  if (fault === 'frozen') {
    const thaw = await engine.freeze();
    return async () => thaw();
  }
  engine.kill();
  return async () => await engine.restart();
}

class Story implements AsyncDisposable {
  /** Its two nodes, as a cluster of their own. */
  readonly nodes: TestPlatform;
  readonly #folder: TemporaryFolder;
  /** The name of its cluster, and of its service, since a key belongs to a service. */
  readonly #name: string;
  readonly #hasOther: boolean;

  private constructor(from: { nodes: TestPlatform; folder: TemporaryFolder; name: string; hasOther: boolean }) {
    this.nodes = from.nodes;
    this.#folder = from.folder;
    this.#name = from.name;
    this.#hasOther = from.hasOther;
  }

  /** Opens nodes of which the second, if there is one, is not running yet. */
  static async open(
    engine: TestEngine,
    other: TestEngine | undefined,
    { behaviour = 'record', clocks = {} }: { behaviour?: Behaviour; clocks?: Case['clocks'] } = {},
  ): Promise<Story> {
    if (!drivers) throw new Error('Nodes need a store that they share');
    const folder = await temporaryFolder();
    const name = `story-${randomBytes(4).toString('hex')}`;
    const nodes = await startPlatform({
      engine,
      drivers,
      joins: platform,
      ...(other && { twinsOn: other }),
      only: ['worker', ...(other ? (['worker2'] as const) : [])],
      later: ['worker2'],
      settings: { BERTH_MOUNT_FOLDER: folder.path, BERTH_CLUSTER: name },
      clocks,
    });
    const story = new Story({ nodes, folder, name, hasOther: other !== undefined });
    await storeAndPull(engine, platform, { image: await testImage(behaviour), service: name });
    return story;
  }

  /** Starts the first holder on the first node, and then the second node. */
  async holder(): Promise<ConnectResponse> {
    const connection = await connectReady(platform, this.#name, this.#request);
    if (this.#hasOther) await this.nodes.restart(['worker2']);
    return connection;
  }

  /** Kills or freezes the worker of the first node, and returns the function that repairs it. */
  async breakWorker(fault: Fault): Promise<() => Promise<void>> {
    if (fault === 'killed') {
      await this.nodes.kill(['worker']);
      return async () => await this.nodes.restart(['worker']);
    }
    const pid = this.nodes.pidOf('worker');
    process.kill(pid, 'SIGSTOP');
    return async () => void process.kill(pid, 'SIGCONT');
  }

  /** Requests a stop that the worker cannot carry out, once the worker has noticed that its engine does not answer. */
  async stopWithoutEngine({ backend_id: id }: ConnectResponse): Promise<void> {
    while (!this.nodes.log.includes('no backends are claimed until it does')) await delay(100);
    await terminate(platform, id, true);
  }

  /** Connects until another backend holds the key, and waits until it has written a record. */
  async untilSucceeded(old: ConnectResponse): Promise<void> {
    let next = old;
    while (next.backend_id === old.backend_id) {
      await delay(1_000);
      next = await connect(platform, this.#name, this.#request);
    }
    await waitFor(platform, next.backend_id, 'ready', successionMs);
    // The backend listens before it writes.
    while (!(await this.#records())[1]?.times.length) await delay(100);
  }

  get #request(): ConnectRequest {
    return { key: 'room', spawn: { cluster: this.#name, executable: { mount: 'records' } } };
  }

  /** The time between the last record of the first holder and the first one of the second. Negative: both ran. */
  async gapSeconds(): Promise<number> {
    const records = await this.#records();
    const [last, first] = [records[0]?.times.at(-1), records[1]?.times[0]];
    if (records.length !== 2 || last === undefined || first === undefined) {
      throw new Error(`There are not two records: ${JSON.stringify(records.map(({ times }) => times.length))}`);
    }
    return first - last;
  }

  /** What each holder wrote, by their fencing tokens. */
  async #records(): Promise<{ token: number; times: number[] }[]> {
    const files = await readdir(this.#folder.path, { recursive: true, withFileTypes: true });
    const records = files
      .filter((file) => file.isFile())
      .map(async ({ name, parentPath }) => {
        const lines = (await readFile(join(parentPath, name), 'utf8')).split('\n');
        // The last line may be incomplete.
        return { token: Number(name), times: lines.slice(0, -1).map(Number) };
      });
    return (await Promise.all(records)).toSorted((one, another) => one.token - another.token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.nodes[Symbol.asyncDispose]();
    await this.#folder[Symbol.asyncDispose]();
  }
}
