/** Getting an image into the registry the way everybody does: docker load, docker tag, docker login, docker push. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand, tryCommand } from './command.ts';
import { imageId, packImage } from './image.ts';
import type { Image } from './image.ts';

export interface PushOptions {
  /** The engine, as DOCKER_HOST names it. */
  readonly dockerHost: string;
  readonly image: Image;
  /** `<registry>/<account>/<service>:<tag>`. */
  readonly target: string;
  readonly account: string;
  /** A file that holds the access token and nothing else. */
  readonly tokenFile: string;
  /** Hears what is being done. */
  readonly onStep?: (words: string) => void;
  readonly signal?: AbortSignal;
}

/** Pushes an image, and returns the digest by which the registry knows it. Loads it only if the engine has another one. */
export async function pushImage(options: PushOptions): Promise<string> {
  const { image, target, account, tokenFile, onStep = () => {} } = options;
  // The person's own docker log-ins, and credential helpers, stay out of this.
  const configFolder = await mkdtemp(join(tmpdir(), 'berth-docker-'));
  const common = {
    env: { DOCKER_HOST: options.dockerHost, DOCKER_CONFIG: configFolder, DOCKER_CONTEXT: undefined },
    ...(options.signal && { signal: options.signal }),
  };
  try {
    if ((await loadedId(image.tag, common)) !== (await imageId(image))) {
      onStep('docker load');
      await runCommand('docker', ['load', '--quiet'], { ...common, input: packImage(image) });
    }
    await runCommand('docker', ['tag', image.tag, target], common);
    const token = await readFile(tokenFile, 'utf8');
    const registry = target.split('/', 1)[0] ?? '';
    await runCommand('docker', ['login', '--username', account, '--password-stdin', registry], {
      ...common,
      input: token.trim(),
    });
    onStep('docker push');
    const said = await runCommand('docker', ['push', target], { ...common, onLine: layerCounter(onStep) });
    const digest = /digest: (sha256:[0-9a-f]{64})/.exec(said)?.[1];
    if (digest === undefined) throw new Error(`docker push did not say which digest it pushed: ${said}`);
    return digest;
  } finally {
    await rm(configFolder, { recursive: true, force: true });
  }
}

async function loadedId(tag: string, common: Parameters<typeof tryCommand>[2]): Promise<string> {
  const { stdout } = await tryCommand('docker', ['image', 'inspect', '--format', '{{.Id}}', tag], common);
  return stdout.trim();
}

/** Counts layers in what docker push prints where there is no terminal: `<id>: Preparing`, `<id>: Pushed` and so on. */
function layerCounter(onStep: (words: string) => void): (line: string) => void {
  const states = new Map<string, string>();
  return (line) => {
    const { id, state } = /^(?<id>[0-9a-f]{12}): (?<state>.+)$/.exec(line)?.groups ?? {};
    if (id === undefined || state === undefined) return;
    states.set(id, state);
    const done = [...states.values()].filter((each) => /^(?:Pushed|Layer already exists|Mounted)/.test(each)).length;
    onStep(`docker push, ${done} of ${states.size} layers`);
  };
}
