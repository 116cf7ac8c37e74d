/** Pushes an image to the registry with the usual commands: docker load, docker tag, docker login, docker push. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand, tryCommand } from './command.ts';
import type { CommandOptions } from './command.ts';
import { imageId, packImage } from './image.ts';
import type { Image } from './image.ts';

export interface PushOptions {
  /** The engine's socket, in the form of DOCKER_HOST. */
  readonly dockerHost: string;
  readonly image: Image;
  /** `<registry>/<account>/<service>:<tag>`. */
  readonly target: string;
  readonly account: string;
  /** A file that contains only the access token. */
  readonly tokenFile: string;
  /** Called with a description of each step. */
  readonly onStep?: (words: string) => void;
  readonly signal?: AbortSignal;
}

/** Pushes an image and returns its digest in the registry. Loads it into the engine only if the engine does not have it. */
export async function pushImage(options: PushOptions): Promise<string> {
  const { dockerHost, image, onStep = () => {}, signal } = options;
  // A separate configuration, so that the user's own logins and credential helpers are not used or changed.
  const configFolder = await mkdtemp(join(tmpdir(), 'berth-docker-'));
  const env = { DOCKER_HOST: dockerHost, DOCKER_CONFIG: configFolder, DOCKER_CONTEXT: undefined };
  const common = { env, ...(signal && { signal }) };
  try {
    if ((await loadedId(image.tag, common)) !== (await imageId(image))) {
      onStep('docker load');
      await runCommand('docker', ['load', '--quiet'], { ...common, input: packImage(image) });
    }
    return await pushLoaded(options, common);
  } finally {
    await rm(configFolder, { recursive: true, force: true });
  }
}

/** Pushes an image that the engine has, and returns its digest in the registry. */
async function pushLoaded(
  { image, target, account, tokenFile, onStep = () => {} }: PushOptions,
  common: CommandOptions,
): Promise<string> {
  await runCommand('docker', ['tag', image.tag, target], common);
  const token = await readFile(tokenFile, 'utf8');
  const registry = target.split('/', 1)[0] ?? '';
  await runCommand('docker', ['login', '--username', account, '--password-stdin', registry], {
    ...common,
    input: token.trim(),
  });
  onStep('docker push');
  const output = await runCommand('docker', ['push', target], { ...common, onLine: layerCounter(onStep) });
  const digest = /digest: (sha256:[0-9a-f]{64})/.exec(output)?.[1];
  if (digest === undefined) throw new Error(`docker push did not report the digest that it pushed: ${output}`);
  return digest;
}

async function loadedId(tag: string, common: CommandOptions): Promise<string> {
  const { stdout } = await tryCommand('docker', ['image', 'inspect', '--format', '{{.Id}}', tag], common);
  return stdout.trim();
}

/** Counts layers in the output of docker push without a terminal: `<id>: Preparing`, `<id>: Pushed` and so on. */
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
