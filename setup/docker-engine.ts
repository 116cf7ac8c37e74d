/** Finds a Docker Engine for this machine's worker. If there is none, installs and starts one. */
import { request } from '../core/http/node-http.ts';
import { findProgram, tryCommand } from './command.ts';
import { installWithApt } from './apt.ts';
import { startDockerEngine } from './docker-daemon.ts';
import type { Terminal } from './terminal.ts';

export type DockerEngine =
  | {
      readonly running: true;
      /** Its socket, in the form of DOCKER_HOST. */
      readonly host: string;
      /** Why this machine cannot push images, if the `docker` command is missing. */
      readonly noClient?: string;
    }
  | { readonly running: false; readonly reason: string };

export interface DockerEngineOptions {
  readonly terminal: Terminal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether missing packages may be installed. */
  readonly mayInstall: boolean;
}

const defaultHost = 'unix:///var/run/docker.sock';

/** A running engine answers a ping at once, but one that has just started can be busy. */
const pingTimeoutMs = 5_000;

type Ping = 'answers' | 'absent' | 'forbidden';

/**
 * Finds the Docker Engine of DOCKER_HOST, of the docker command's current context or of the default socket. If none answers, starts
 * one, and installs it first if necessary: only as root, only with apt, and only after announcing it.
 */
export async function ensureDockerEngine(options: DockerEngineOptions): Promise<DockerEngine> {
  const named = options.environment['DOCKER_HOST'];
  const host = named || (await contextHost()) || defaultHost;
  if (!host.startsWith('unix://')) {
    return no(
      `The current docker context uses ${host}, but backends run on this machine only: set DOCKER_HOST to the unix:// socket of an engine on this machine`,
    );
  }
  const ping = await pingEngine(host);
  if (ping === 'answers') return await withClient(host, options);
  if (ping === 'forbidden') {
    return no(
      `The Docker Engine at ${host} refuses this user: ` +
        'run "sudo usermod -aG docker $USER", log in again, and start again',
    );
  }
  if (named) return no(`No Docker Engine answers at DOCKER_HOST (${host}): start it there, or unset DOCKER_HOST`);
  return await installAndStart(options);
}

/** Pings the engine on a unix:// socket. */
export async function pingEngine(host: string): Promise<Ping> {
  return await new Promise((resolve) => {
    const ping = request({ socketPath: host.replace(/^unix:\/\//, ''), path: '/_ping', timeout: pingTimeoutMs });
    ping.once('response', (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'answers' : 'absent');
    });
    ping.once('timeout', () => ping.destroy());
    ping.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'EACCES' ? 'forbidden' : 'absent'));
    ping.once('close', () => resolve('absent'));
    ping.end();
  });
}

async function installAndStart(options: DockerEngineOptions): Promise<DockerEngine> {
  if (process.platform !== 'linux')
    return no(
      'Berth runs on Linux only, because it must reach the addresses of containers: use a Linux machine or a virtual machine',
    );
  const installed = (await findProgram('dockerd')) !== undefined;
  if (process.getuid?.() !== 0) {
    return no(
      installed
        ? 'Docker Engine is installed but not running: run "sudo systemctl start docker", then start again'
        : 'Docker Engine is not installed: install it (on Debian and Ubuntu "sudo apt-get install docker.io"), then start again',
    );
  }
  if (!installed) {
    const problem = await installEngine(options);
    if (problem !== undefined) return no(problem);
  }
  const problem = await startDockerEngine(options.terminal, async () => (await pingEngine(defaultHost)) === 'answers');
  return problem === undefined ? await withClient(defaultHost, options) : no(problem);
}

async function installEngine({ terminal, mayInstall }: DockerEngineOptions): Promise<string | undefined> {
  if (!mayInstall || (await findProgram('apt-get')) === undefined) {
    return 'Docker Engine is not installed: install it (https://docs.docker.com/engine/install/), then start again';
  }
  terminal.print(
    'Docker Engine is not installed. Installing the package docker.io with apt-get, because this runs as root.',
  );
  // From Debian 13 on, the docker command is a separate package.
  return await installWithApt(terminal, 'Installing Docker Engine', ['docker.io', 'runc', 'iptables'], ['docker-cli']);
}

/** Installs the docker command, which pushes images, if it is missing. */
async function withClient(host: string, { terminal, mayInstall }: DockerEngineOptions): Promise<DockerEngine> {
  if ((await findProgram('docker')) !== undefined) return { running: true, host };
  const noClient = 'The docker command is missing, so this machine cannot push images: install it, then start again';
  const canInstall = mayInstall && process.getuid?.() === 0 && (await findProgram('apt-get')) !== undefined;
  if (!canInstall) return { running: true, host, noClient };
  terminal.print('The docker command is missing. Installing it with apt-get, because this runs as root.');
  await installWithApt(terminal, 'Installing the docker command', [], ['docker-cli']);
  if ((await findProgram('docker')) === undefined) {
    await installWithApt(terminal, 'Installing the docker command', ['docker.io'], []);
  }
  return (await findProgram('docker')) === undefined ? { running: true, host, noClient } : { running: true, host };
}

/** The socket of the docker command's current context. Docker Desktop and rootless engines set it. */
async function contextHost(): Promise<string | undefined> {
  const { code, stdout } = await tryCommand('docker', ['context', 'inspect', '--format', '{{.Endpoints.docker.Host}}']);
  return code === 0 ? stdout.trim() : undefined;
}

function no(reason: string): DockerEngine {
  return { running: false, reason };
}
