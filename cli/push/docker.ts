/** Builds and pushes images with Docker. */
import { existsSync, rmSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Environment } from '../config/file.ts';
import { CliError } from '../errors.ts';
import { runProgram, showProgram } from '../program-runner.ts';

/** The options of `docker build`. */
export interface BuildOptions {
  readonly file?: string | undefined;
  readonly context: string;
  readonly buildContexts: readonly string[];
  readonly buildArgs: readonly string[];
  readonly platform?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

interface DockerOptions {
  readonly env: Environment;
  readonly cwd: string;
  readonly signal: AbortSignal;
}

/** The credentials of a push. */
export interface RegistryLogin {
  readonly account: string;
  readonly token: string;
}

/** Builds an image with a name. Docker shows the progress. */
export async function buildImage(name: string, build: BuildOptions, options: DockerOptions): Promise<void> {
  const args = [
    'build',
    '--tag',
    name,
    ...(build.file === undefined ? [] : ['--file', build.file]),
    ...(build.platform === undefined ? [] : ['--platform', build.platform]),
    ...build.buildContexts.flatMap((each) => ['--build-context', each]),
    ...build.buildArgs.flatMap((each) => ['--build-arg', each]),
    ...Object.entries(build.labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]),
    build.context,
  ];
  if ((await showProgram('docker', args, options)) !== 0) {
    throw new CliError('BuildFailed', 'docker build failed, see its output');
  }
}

/** Adds a name to an image of the local engine. */
export async function tagImage(image: string, name: string, options: DockerOptions): Promise<void> {
  const { code, stderr } = await runProgram('docker', ['tag', image, name], options);
  if (code !== 0) throw new CliError('NoSuchImage', `Docker has no image "${image}": ${lastLine(stderr)}`);
}

/** Pushes an image. Docker shows the progress of each layer. */
export async function pushImage(name: string, login: RegistryLogin, options: DockerOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-docker-'));
  // A second Ctrl-C ends the process without `finally`, and the credentials must be deleted then, too.
  const removeAtExit = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeAtExit);
  try {
    const env = await writeDockerConfig(folder, name, login, options.env);
    if ((await showProgram('docker', ['push', name], { ...options, env })) !== 0) {
      throw new CliError('PushFailed', 'docker push failed, see its output');
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
    process.off('exit', removeAtExit);
  }
}

/**
 * Writes a separate docker configuration for this push. So the credentials do not replace a log-in of the user, are not kept on the disk,
 * and do not appear in the command line. Keeps the user's engine: contexts and certificates. Returns the environment of docker.
 */
// oxlint-disable-next-line max-params -- two parts of a file, and where it is
async function writeDockerConfig(
  folder: string,
  name: string,
  login: RegistryLogin,
  env: Environment,
): Promise<Environment> {
  const own = env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker');
  const auth = Buffer.from(`${login.account}:${login.token}`).toString('base64');
  const registry = name.slice(0, name.indexOf('/'));
  const context = await currentContext(own);
  const config = { auths: { [registry]: { auth } }, ...(context !== undefined && { currentContext: context }) };
  await writeFile(join(folder, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const contexts = join(own, 'contexts');
  if (existsSync(contexts)) await symlink(contexts, join(folder, 'contexts'));
  return {
    ...env,
    DOCKER_CONFIG: folder,
    // Without this variable, docker reads certificates from the folder of its configuration.
    ...(env['DOCKER_TLS_VERIFY'] && { DOCKER_CERT_PATH: env['DOCKER_CERT_PATH'] || own }),
  };
}

async function currentContext(folder: string): Promise<string | undefined> {
  try {
    const config = JSON.parse(await readFile(join(folder, 'config.json'), 'utf8')) as { currentContext?: unknown };
    return typeof config.currentContext === 'string' ? config.currentContext : undefined;
  } catch {
    return undefined;
  }
}

/** Loads an image from an archive into the engine. */
export async function loadArchive(archive: Readable, options: DockerOptions): Promise<void> {
  if ((await showProgram('docker', ['load', '--quiet'], { ...options, input: archive })) !== 0) {
    throw new CliError('LoadFailed', 'docker load failed, see its output');
  }
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}
