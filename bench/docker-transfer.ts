/** Whole `docker push` and `docker pull` commands, with an image of 200 MB. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../setup/command.ts';
import { packImage } from '../setup/image.ts';
import { startEngine } from '../test/kit/engines/docker-engine.ts';
import { cpuSeconds, settleDisk } from './machine.ts';

const layers = 4;
const layerBytes = 50_000_000;

/** A repository under its docker name, and its login. */
export interface DockerTarget {
  /** Such as `127.0.0.1:5000/acme/bench`. */
  readonly repository: string;
  readonly login?: { readonly user: string; readonly password: string };
  /** The process of the registry. */
  readonly pid: number;
}

export interface Transfer {
  /** Duration of the command. */
  readonly seconds: number;
  /** CPU time of the registry during the command. */
  readonly cpuSeconds: number;
}

export interface DockerClient extends AsyncDisposable {
  /** Pushes a new image. */
  push(target: DockerTarget): Promise<{ readonly image: string; readonly push: Transfer }>;
  /** Pulls a pushed image, which the engine does not have. */
  pull(image: string, target: DockerTarget): Promise<Transfer>;
}

/** Starts an empty Docker Engine. */
export async function openDocker(): Promise<DockerClient> {
  await using opening = new AsyncDisposableStack();
  const engine = opening.use(await startEngine('stable'));
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-docker-'));
  opening.defer(async () => await rm(folder, { recursive: true }));
  const common = { env: { DOCKER_HOST: engine.host, DOCKER_CONFIG: folder, DOCKER_CONTEXT: undefined } };
  const docker = async (...args: string[]) => await runCommand('docker', args, common);
  const measured = async (pid: number, ...args: string[]): Promise<Transfer> => {
    await settleDisk();
    const before = await cpuSeconds(pid);
    const startedMs = performance.now();
    await docker(...args);
    const seconds = (performance.now() - startedMs) / 1000;
    return { seconds, cpuSeconds: (await cpuSeconds(pid)) - before };
  };
  let images = 0;
  const owned = opening.move();
  return {
    push: async ({ repository, login, pid }) => {
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
      const push = await measured(pid, 'push', reference);
      await docker('image', 'rm', reference);
      return { image: reference, push };
    },
    pull: async (image, { pid }) => {
      const pull = await measured(pid, 'pull', image);
      await docker('image', 'rm', image);
      return pull;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
