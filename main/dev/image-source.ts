/** Builds or finds the image of the development server, and pushes it to the registry. */
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runDocker } from './docker.ts';
import type { DockerOptions, Environment } from './docker.ts';
import type { BuildSettings, DevSettings } from './settings.ts';

export interface ImageSourceOptions {
  readonly source: DevSettings['source'];
  /** `<registry>/<account>/<service>`. */
  readonly repository: string;
  readonly account: string;
  readonly token: string;
  /** A folder that only this user can read. */
  readonly folder: string;
  readonly environment: Environment;
}

/** The tag of every image. It has no effect, because backends run digests. */
const tag = 'dev';

export class ImageSource {
  readonly #options: ImageSourceOptions;
  readonly #pushed = new Set<string>();

  constructor(options: ImageSourceOptions) {
    this.#options = options;
  }

  /** Builds or finds the image, and pushes it. Returns its digest. Throws `DockerFailure`. */
  async push(signal: AbortSignal, onLine: (line: string) => void): Promise<string> {
    const { source, repository, environment } = this.#options;
    const docker = { environment, signal };
    const local = 'image' in source ? source.image : localName(source.build);
    if ('build' in source) await runDocker(buildArguments(source.build, local), { ...docker, onLine });
    else await this.#pullMissing(source.image, { ...docker, onLine });
    const target = `${repository}:${tag}`;
    await runDocker(['tag', local, target], docker);
    const pushEnvironment = { ...environment, DOCKER_CONFIG: await this.#logIn() };
    const lines = await runDocker(['push', target], { ...docker, environment: pushEnvironment });
    const digest = /digest: (sha256:[0-9a-f]{64})/.exec(lines.join('\n'))?.[1];
    if (digest === undefined) throw new Error(`docker push reported no digest: ${lines.join('\n')}`);
    this.#pushed.add(digest);
    return digest;
  }

  /**
   * Removes the names that pushes have added to images, except the name of the digest `kept`. The last build keeps its local name, so
   * that the next start finds its layers.
   */
  async removeNames(signal: AbortSignal, kept?: string): Promise<void> {
    const { repository, environment } = this.#options;
    const remove = async (name: string) => await runDocker(['image', 'rm', name], { environment, signal });
    for (const digest of this.#pushed) {
      // The engine refuses to remove an image that a container uses. A later call retries.
      if (digest !== kept) await remove(`${repository}@${digest}`).then(() => this.#pushed.delete(digest), ignore);
    }
    if (kept === undefined) await remove(`${repository}:${tag}`).catch(ignore);
  }

  /** Pulls the image only if the engine does not have it. */
  async #pullMissing(image: string, docker: DockerOptions): Promise<void> {
    const isPresent = await runDocker(['image', 'inspect', '--format', 'ok', image], docker).then(
      () => true,
      () => false,
    );
    docker.signal.throwIfAborted();
    if (!isPresent) await runDocker(['pull', image], docker);
  }

  /** Writes a separate docker configuration for pushes, so that the user's log-ins stay unchanged. */
  async #logIn(): Promise<string> {
    const { folder, repository, account, token } = this.#options;
    const own = join(folder, 'docker');
    await mkdir(own, { recursive: true, mode: 0o700 });
    const auth = Buffer.from(`${account}:${token}`).toString('base64');
    const registry = repository.slice(0, repository.indexOf('/'));
    await writeFile(join(own, 'config.json'), JSON.stringify({ auths: { [registry]: { auth } } }), { mode: 0o600 });
    return own;
  }
}

function buildArguments({ dockerfile, context, target, buildArgs }: BuildSettings, name: string): string[] {
  return [
    'build',
    '--tag',
    name,
    '--file',
    dockerfile,
    ...(target === undefined ? [] : ['--target', target]),
    ...buildArgs.flatMap((each) => ['--build-arg', each]),
    context,
  ];
}

/** The local image name of a folder: constant, and different for each folder. */
function localName({ context, dockerfile, target = '' }: BuildSettings): string {
  const words = basename(context)
    .toLowerCase()
    .match(/[a-z0-9]+/g) ?? ['app'];
  const hash = createHash('sha256').update([context, dockerfile, target].join('\0')).digest('hex').slice(0, 8);
  return `berth-dev/${words.join('-').slice(0, 60)}-${hash}`;
}

function ignore(): void {}
