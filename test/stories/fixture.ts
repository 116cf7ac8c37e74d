/** The fixture of stories: a platform on a real Docker Engine, with real images. */
import { describe } from 'vitest';
import type { BackendMetadata, StatusObject } from '../../contract/backend.ts';
import type { ConnectRequest, ConnectResponse } from '../../contract/connect.ts';
import type { BackendStatus } from '../../contract/statuses.ts';
import { runCommand } from '../../setup/command.ts';
import { sampleImage } from '../../setup/sample-image.ts';
import { api, backendOf, connect, connectReady, statusStream, terminate } from '../kit/platform/api-client.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { containersOf } from '../kit/engines/engine-client.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import type { TestDrivers } from '../kit/servers/drivers.ts';
import { pushTestImage, testImage } from '../kit/engines/images.ts';
import type { Behaviour } from '../kit/engines/images.ts';
import { storeAndPull, storeTestImage } from '../kit/engines/stored-images.ts';
import type { PlatformOptions } from '../kit/platform/environments.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';

/** An engine and drivers on which a story runs. */
export interface Setting {
  readonly engine: TestEngine;
  readonly drivers: TestDrivers;
}

/** Declares stories on all drivers of this run, on the first engine. */
export function onAllDrivers(declare: (setting: Setting) => void): void {
  declareOn(
    testEngines()
      .slice(0, 1)
      .flatMap((engine) => testDrivers().map((drivers): Setting => ({ engine, drivers }))),
    declare,
  );
}

/**
 * Declares stories for which the engine's release matters. Covers each engine and each kind of drivers, but not every combination,
 * because no code depends on both.
 */
export function onAllEngines(declare: (setting: Setting) => void): void {
  const engines = testEngines();
  const drivers = testDrivers();
  const shared = drivers.find((each) => each !== 'embedded');
  if (engines.length === 1 || !shared) {
    declareOn(
      engines.flatMap((engine) => drivers.map((each): Setting => ({ engine, drivers: each }))),
      declare,
    );
    return;
  }
  declareOn(
    engines.map((engine, i): Setting => ({ engine, drivers: i === 0 ? shared : 'embedded' })),
    declare,
  );
}

function declareOn(settings: readonly Setting[], declare: (setting: Setting) => void): void {
  const placeholder: Setting = { engine: { kind: 'stable', host: '', version: '' }, drivers: 'embedded' };
  describe.skipIf(settings.length > 0)('without a Docker Engine', () => {
    if (settings.length === 0) declare(placeholder);
  });
  for (const setting of settings) {
    const drivers = setting.drivers === 'embedded' ? 'in one process' : 'on MongoDB and Redis';
    describe(`on Docker Engine ${setting.engine.version}, ${drivers}`, () => {
      declare(setting);
    });
  }
}

/**
 * For `test.for`: declares a test only in some settings. In the others it does not exist, because a skipped test means that the
 * machine lacks something.
 */
export function onlyIf(isDeclared: boolean): readonly string[] {
  return isDeclared ? ['here'] : [];
}

/** A platform, and the actions of stories on it. Disposing it stops the platform and its backends. */
export class Fixture implements AsyncDisposable {
  readonly platform: TestPlatform;
  readonly #engine: TestEngine;

  private constructor(platform: TestPlatform, engine: TestEngine) {
    this.platform = platform;
    this.#engine = engine;
  }

  static async open(
    setting: Setting & Pick<PlatformOptions, 'twinsOn' | 'only'>,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Fixture> {
    return new Fixture(await startPlatform({ ...setting, settings }), setting.engine);
  }

  /** Pushes a test image as the service named for its behaviour, and returns its digest. Each variant is a different image. */
  async push(behaviour: Behaviour, variant?: string): Promise<string> {
    const image = await testImage(behaviour, variant);
    return await storeAndPull(this.#engine, this.platform, { image, service: behaviour });
  }

  /** Pushes as `push` does, but does not pull the image to the engine. */
  async pushOnly(behaviour: Behaviour, variant: string, tag = 'latest'): Promise<string> {
    const image = await testImage(behaviour, variant);
    return await storeTestImage(this.platform, { image, service: behaviour, tag });
  }

  /** Pushes as `push` does, with the docker command. */
  async pushWithDocker(behaviour: Behaviour): Promise<string> {
    const image = await testImage(behaviour);
    return await pushTestImage(this.#engine, this.platform, { image, service: behaviour });
  }

  /** Pushes the sample application as the service `pad`. */
  async pushSample(): Promise<string> {
    const image = await sampleImage('berth-test/pad:latest');
    return await storeAndPull(this.#engine, this.platform, { image, service: 'pad' });
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

  /** Every status of a backend up to the given one. Throws if the backend never has it. */
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

  /** Runs the docker command on the platform's engine. */
  async docker(...args: string[]): Promise<string> {
    return (await runCommand('docker', args, { env: { DOCKER_HOST: this.#engine.host } })).trim();
  }

  /** The container of a running backend. */
  async containerOf({ backend_id: id }: ConnectResponse): Promise<string> {
    return (await containersOf(this.#engine, id)).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.platform[Symbol.asyncDispose]();
  }
}

/** Time limit for a status. */
const storyTimeoutMs = 90_000;
