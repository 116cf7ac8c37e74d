/** What stories are told on: a platform of their own on a real Docker Engine, with real images pushed. */
import { describe } from 'vitest';
import type { BackendMetadata, StatusObject } from '../../contract/backend.ts';
import type { ConnectRequest, ConnectResponse } from '../../contract/connect.ts';
import type { BackendStatus } from '../../contract/statuses.ts';
import { runCommand } from '../../setup/command.ts';
import { sampleImage } from '../../setup/sample-image.ts';
import { api, backendOf, connect, connectReady, statusStream, terminate } from '../kit/client.ts';
import type { TestEngine } from '../kit/docker-engine.ts';
import { testEngines } from '../kit/engines.ts';
import { pushTestImage, testImage } from '../kit/images.ts';
import type { Behaviour } from '../kit/images.ts';
import { startPlatform } from '../kit/platform.ts';
import type { TestPlatform } from '../kit/platform.ts';

/** Tells stories once on every engine of this run; where there is none, they are skipped. */
export function onEveryEngine(tell: (engine: TestEngine) => void): void {
  const engines = testEngines();
  const nowhere: TestEngine = { kind: 'stable', host: '', version: '' };
  describe.skipIf(engines.length > 0)('without a Docker Engine', () => {
    if (engines.length === 0) tell(nowhere);
  });
  for (const engine of engines) {
    describe(`on Docker Engine ${engine.version}`, () => {
      tell(engine);
    });
  }
}

/** A platform with what stories do to it. Disposing it ends the platform and what still runs on it. */
export class Stage implements AsyncDisposable {
  readonly platform: TestPlatform;
  readonly #engine: TestEngine;

  private constructor(platform: TestPlatform, engine: TestEngine) {
    this.platform = platform;
    this.#engine = engine;
  }

  static async open(engine: TestEngine, settings: Readonly<Record<string, string>> = {}): Promise<Stage> {
    return new Stage(await startPlatform({ engine, settings }), engine);
  }

  /** Pushes a test image as the service of its behaviour's name, and returns its digest. A variant is an image of its own. */
  async push(behaviour: Behaviour, variant?: string): Promise<string> {
    const image = await testImage(behaviour, variant);
    return await pushTestImage(this.#engine, this.platform, { image, service: behaviour });
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

  /** Runs the docker command on this stage's engine. */
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
