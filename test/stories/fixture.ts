/** What stories are told on: a platform of their own on a real Docker Engine, with real images pushed. */
import { describe } from 'vitest';
import type { BackendMetadata, StatusObject } from '../../contract/backend.ts';
import type { ConnectRequest, ConnectResponse } from '../../contract/connect.ts';
import type { BackendStatus } from '../../contract/statuses.ts';
import { runCommand } from '../../setup/command.ts';
import { sampleImage } from '../../setup/sample-image.ts';
import { api, backendOf, connect, connectReady, statusStream, terminate } from '../kit/platform/api-client.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import type { TestDrivers } from '../kit/servers/drivers.ts';
import { pushTestImage, testImage } from '../kit/engines/images.ts';
import type { Behaviour } from '../kit/engines/images.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';

/** Where a story is told. */
export interface Setting {
  readonly engine: TestEngine;
  readonly drivers: TestDrivers;
}

/** Tells stories on all drivers of this run, on the first engine. */
export function onAllDrivers(tell: (setting: Setting) => void): void {
  tellIn(
    testEngines()
      .slice(0, 1)
      .flatMap((engine) => testDrivers().map((drivers): Setting => ({ engine, drivers }))),
    tell,
  );
}

/** The same, and on every other engine on the embedded drivers: for stories in which the release of the engine matters. */
export function inEverySetting(tell: (setting: Setting) => void): void {
  tellIn(
    testEngines().flatMap((engine, i) =>
      (i === 0 ? testDrivers() : (['embedded'] as const)).map((drivers): Setting => ({ engine, drivers })),
    ),
    tell,
  );
}

function tellIn(settings: readonly Setting[], tell: (setting: Setting) => void): void {
  const nowhere: Setting = { engine: { kind: 'stable', host: '', version: '' }, drivers: 'embedded' };
  describe.skipIf(settings.length > 0)('without a Docker Engine', () => {
    if (settings.length === 0) tell(nowhere);
  });
  for (const setting of settings) {
    const drivers = setting.drivers === 'embedded' ? 'in one process' : 'on MongoDB and Redis';
    describe(`on Docker Engine ${setting.engine.version}, ${drivers}`, () => {
      tell(setting);
    });
  }
}

/**
 * For `test.for`, of a test that is told in some settings only. In the others there is no such test: to skip it would say that the
 * machine lacks something.
 */
export function where(isTold: boolean): readonly string[] {
  return isTold ? ['here'] : [];
}

/** A platform with what stories do to it. Disposing it ends the platform and what still runs on it. */
export class Fixture implements AsyncDisposable {
  readonly platform: TestPlatform;
  readonly #engine: TestEngine;

  private constructor(platform: TestPlatform, engine: TestEngine) {
    this.platform = platform;
    this.#engine = engine;
  }

  static async open(
    { engine, drivers, twinsOn }: Setting & { readonly twinsOn?: TestEngine },
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Fixture> {
    return new Fixture(await startPlatform({ engine, drivers, twinsOn, settings }), engine);
  }

  /** Pushes a test image as the service of its behaviour's name, and returns its digest. A variant is an image of its own. */
  async push(behaviour: Behaviour, variant?: string): Promise<string> {
    const image = await testImage(behaviour, variant);
    return await pushTestImage(this.#engine, this.platform, { image, service: behaviour });
  }

  /**
   * The same from somewhere else: the engine, which is a node's, does not know the image under the name by which nodes fetch it.
   */
  async pushFromAfar(behaviour: Behaviour, variant: string, tag = 'latest'): Promise<string> {
    const { account, token, registry } = this.platform;
    const target = { account, token, registry: registry.replace('127.0.0.1', 'localhost') };
    const image = await testImage(behaviour, variant);
    return await pushTestImage(this.#engine, target, { image, service: behaviour, tag });
  }

  /** Pushes the sample application as the service `pad`. */
  async pushSample(): Promise<string> {
    const image = await sampleImage('berth-test/pad:latest');
    return await pushTestImage(this.#engine, this.platform, { image, service: 'pad' });
  }

  async connect(service: string, request: ConnectRequest = {}): Promise<ConnectResponse> {
    return await connect(this.platform, service, request);
  }

  /** Connects, and waits until the backend is ready. */
  async connectReady(service: string, request: ConnectRequest = {}): Promise<ConnectResponse> {
    return await connectReady(this.platform, service, request);
  }

  async terminate({ backend_id: id }: ConnectResponse, hard = false): Promise<void> {
    await terminate(this.platform, id, hard);
  }

  async backend({ backend_id: id }: ConnectResponse): Promise<BackendMetadata> {
    return await backendOf(this.platform, id);
  }

  /** Every status of a backend until it has the one that is waited for. Throws if it ends without. */
  async statusesUntil({ backend_id: id }: ConnectResponse, status: BackendStatus): Promise<StatusObject[]> {
    const seen: StatusObject[] = [];
    for await (const each of statusStream(this.platform, id, AbortSignal.timeout(storyTimeoutMs))) {
      seen.push(each);
      if (each.status === status) return seen;
    }
    throw new Error(`Never "${status}": ${JSON.stringify(seen)}`);
  }

  async get<Answer>(path: string): Promise<Answer> {
    const answer = await api(this.platform, path);
    return (await answer.json()) as Answer;
  }

  /** Runs the docker command on this fixture's engine. */
  async docker(...args: string[]): Promise<string> {
    return (await runCommand('docker', args, { env: { DOCKER_HOST: this.#engine.host } })).trim();
  }

  /** The container of a backend that runs. */
  async containerOf({ backend_id: id }: ConnectResponse): Promise<string> {
    return await this.docker('ps', '--quiet', '--filter', `label=berth.backend=${id}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.platform[Symbol.asyncDispose]();
  }
}

/** No story waits longer for a status. */
const storyTimeoutMs = 50_000;
