/** The platform's registry for an engine: the docker command, logged in. */
import { join } from 'node:path';
import { runCommand } from '../../setup/command.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';

/** The repository and credentials of a push over HTTP. */
export interface Grant {
  /** The URL of the repository. */
  readonly url: string;
  readonly authorization: string;
  /** The repository whose layers may be mounted. */
  readonly mountFrom: string | undefined;
}

export class EngineRegistry {
  readonly platform: Pick<TestPlatform, 'account' | 'registry' | 'token'>;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(platform: EngineRegistry['platform'], env: Readonly<Record<string, string>>) {
    this.platform = platform;
    this.#env = env;
  }

  /** @param folder - the folder for the log-in */
  static async open(
    { host }: TestEngine,
    platform: EngineRegistry['platform'],
    folder: string,
  ): Promise<EngineRegistry> {
    // The classic builder, because BuildKit would request the base image from a registry.
    const env = { DOCKER_HOST: host, DOCKER_CONFIG: join(folder, 'docker'), DOCKER_BUILDKIT: '0' };
    const { account, registry, token } = platform;
    await runCommand('docker', ['login', '--username', account, '--password-stdin', registry], { env, input: token });
    return new EngineRegistry(platform, env);
  }

  /** Requests a grant to push to a repository, and to mount layers of another repository. */
  async grant(repository: string, other?: string): Promise<Grant> {
    const { account, registry, token } = this.platform;
    const basic = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
    const mountFrom = other && `${account}/${other}`;
    const mounting = mountFrom === undefined ? '' : `&scope=repository:${mountFrom}:pull`;
    const scope = `repository:${account}/${repository}:pull,push${mounting}`;
    const answer = await fetch(`http://${registry}/token?scope=${scope}`, { headers: { authorization: basic } });
    const { access_token: granted } = (await answer.json()) as { access_token: string };
    return { url: `http://${registry}/v2/${account}/${repository}`, authorization: `Bearer ${granted}`, mountFrom };
  }

  /** Pulls an image, and tags it. */
  async pull(repository: string, tag: string): Promise<void> {
    const source = this.#reference(repository);
    await this.#docker('pull', '--quiet', source);
    await this.#docker('tag', source, tag);
  }

  /** Builds an image without network, and pushes it. */
  async buildAndPush(folder: string, repository: string): Promise<void> {
    const target = this.#reference(repository);
    await this.#docker('build', '--quiet', '--network', 'none', '--tag', target, folder);
    await this.#docker('push', '--quiet', target);
  }

  #reference(repository: string): string {
    return `${this.platform.registry}/${this.platform.account}/${repository}:latest`;
  }

  async #docker(...args: string[]): Promise<void> {
    await runCommand('docker', args, { env: this.#env });
  }
}
