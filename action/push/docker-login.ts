/** A separate docker configuration for this step, so that other steps do not have the log-in. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment, Workflow } from '../workflow/workflow.ts';

export interface RegistryLogin {
  /** The host and port of the registry. */
  readonly registry: string;
  readonly account: string;
  readonly token: string;
}

interface Job {
  readonly env: Environment;
  readonly workflow: Workflow;
}

/** The state with the path of the folder, for the post step. */
const stateName = 'docker-config';

/** Folders of a docker configuration with engines, builders and plug-ins. */
const sharedFolders = ['contexts', 'cli-plugins', 'buildx'];

/** Logs in, calls `work` with an environment in which docker uses the log-in, and deletes the log-in. */
export async function withLogIn<T>(
  login: RegistryLogin,
  { env, workflow }: Job,
  work: (env: Environment) => Promise<T>,
): Promise<T> {
  const own = env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker');
  const folder = await logIn(login, own, { env, workflow });
  // Without this variable, docker reads certificates from the folder of its configuration.
  const certificates = env['DOCKER_TLS_VERIFY'] && { DOCKER_CERT_PATH: env['DOCKER_CERT_PATH'] || own };
  try {
    return await work({ ...env, DOCKER_CONFIG: folder, ...certificates });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Deletes the log-in of a step that was killed before it could do so. */
export async function logOut(workflow: Workflow): Promise<void> {
  const folder = workflow.state(stateName);
  if (folder !== '') await rm(folder, { recursive: true, force: true });
}

/** Writes the configuration with what is in the folder `own`, and returns its folder. */
async function logIn(login: RegistryLogin, own: string, { env, workflow }: Job): Promise<string> {
  const folder = await mkdtemp(join(env['RUNNER_TEMP'] || tmpdir(), 'berth-docker-'));
  // Saved before the log-in is written, so that the post step deletes it even if this process is killed.
  workflow.saveState(stateName, folder);
  await mkdir(join(own, 'buildx'), { recursive: true });
  for (const name of sharedFolders) {
    if (existsSync(join(own, name))) await symlink(join(own, name), join(folder, name));
  }
  const config = withLogin(await readConfig(own), login, workflow);
  await writeFile(join(folder, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  return folder;
}

interface DockerConfig {
  readonly auths?: Readonly<Record<string, unknown>>;
  readonly credHelpers?: Readonly<Record<string, string>>;
}

/** Adds a log-in, and keeps those of the job, which builds need to pull their base images. */
function withLogin(
  config: DockerConfig,
  { registry, account, token }: RegistryLogin,
  workflow: Workflow,
): DockerConfig {
  const auth = Buffer.from(`${account}:${token}`).toString('base64');
  workflow.mask(auth);
  return {
    ...config,
    auths: { ...config.auths, [registry]: { auth } },
    // An empty helper for this registry keeps docker from asking the default credentials store.
    credHelpers: { ...config.credHelpers, [registry]: '' },
  };
}

async function readConfig(folder: string): Promise<DockerConfig> {
  try {
    return JSON.parse(await readFile(join(folder, 'config.json'), 'utf8')) as DockerConfig;
  } catch {
    return {};
  }
}
