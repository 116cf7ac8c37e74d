/** A whole `docker push` and `docker pull` of an image of 200 MB, engine and all. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../setup/command.ts';
import { packImage } from '../setup/image.ts';
import { startEngine } from '../test/kit/docker-engine.ts';
import { settleDisk } from './settled-disk.ts';

const layers = 4;
const layerBytes = 50_000_000;

/** A repository as docker names it, and the log-in it needs. */
export interface DockerTarget {
  /** Such as `127.0.0.1:5000/acme/bench`. */
  readonly repository: string;
  readonly login?: { readonly user: string; readonly password: string };
}

export interface DockerClient extends AsyncDisposable {
  /** Seconds that a push of a new image takes, and a pull of it into an engine that has none of it. */
  transfer(target: DockerTarget): Promise<{ pushSeconds: number; pullSeconds: number }>;
}

/** A Docker Engine with nothing in it. */
export async function openDocker(): Promise<DockerClient> {
  await using opening = new AsyncDisposableStack();
  const engine = opening.use(await startEngine('stable'));
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-docker-'));
  opening.defer(async () => await rm(folder, { recursive: true }));
  const common = { env: { DOCKER_HOST: engine.host, DOCKER_CONFIG: folder, DOCKER_CONTEXT: undefined } };
  const docker = async (...args: string[]) => await runCommand('docker', args, common);
  const seconds = async (...args: string[]) => {
    await settleDisk();
    const startedMs = performance.now();
    await docker(...args);
    return (performance.now() - startedMs) / 1000;
  };
  let images = 0;
  const owned = opening.move();
  return {
    transfer: async ({ repository, login }) => {
      if (login) {
        const { user, password } = login;
        const host = repository.split('/', 1)[0] ?? '';
        await runCommand('docker', ['login', '--username', user, '--password-stdin', host], {
          ...common,
          input: password,
        });
      }
      const reference = `${repository}:${(images += 1)}`;
      const files = Array.from({ length: layers }, (_, index) => join(folder, `layer-${index}`));
      for (const file of files) await writeFile(file, randomBytes(layerBytes));
      const image = {
        tag: reference,
        layers: files.map((file) => [{ path: '/data', file }]),
        config: { Cmd: ['/data'] },
      };
      await runCommand('docker', ['load', '--quiet'], { ...common, input: packImage(image) });
      const pushSeconds = await seconds('push', reference);
      await docker('image', 'rm', reference);
      const pullSeconds = await seconds('pull', reference);
      await docker('image', 'rm', reference);
      return { pushSeconds, pullSeconds };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
