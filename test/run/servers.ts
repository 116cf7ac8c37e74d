/** The servers of a run of tests: a Docker Engine of each kind, MongoDB and Redis, as far as this machine allows. */
import { findProgram, runCommand } from '../../setup/command.ts';
import { pingEngine } from '../../setup/docker-engine.ts';
import { messageOf } from '../kit/message-of.ts';
import type { AptPackages } from '../kit/packages/apt-packages.ts';
import { startEngine } from '../kit/engines/docker-engine.ts';
import type { EngineKind, TestEngine } from '../kit/engines/docker-engine.ts';
import { forgetEndedConnections } from '../kit/machine/tracked-connections.ts';
import { staticBusybox } from '../kit/packages/docker-packages.ts';
import { watchEngine } from '../kit/engines/engine-watch.ts';
import { enginesVariable } from '../kit/engines/engines.ts';
import { sharedServersVariable } from '../kit/servers/drivers.ts';
import type { SharedServers } from '../kit/servers/drivers.ts';
import type { Missing } from '../kit/required.ts';
import { openSharedServers } from '../kit/servers/shared-servers.ts';
import type { EngineProblems } from './installs.ts';

/** A restart of an engine after a deadlock. */
export interface Restart {
  readonly kind: EngineKind;
  readonly restarting: Promise<void>;
}

export interface ServerOptions {
  readonly packages: AptPackages;
  readonly problems: EngineProblems;
  /** Collects the parts that cannot be tested here, with the reasons. */
  readonly missing: Missing[];
  /** Collects the restarts of engines after deadlocks. */
  readonly restarted: Restart[];
  readonly needsEngines: boolean;
}

/** Starts the servers. `owned` stops them. Returns the environment in which tests find them. */
export async function openServers(
  options: ServerOptions,
  owned: AsyncDisposableStack,
): Promise<Readonly<Record<string, string>>> {
  const [engines, shared] = await Promise.all([
    options.needsEngines ? openEngines(options, owned) : [],
    openSharedServers(options.packages, owned),
  ]);
  if (!('missing' in shared)) return { ...environmentOf(engines), ...urlsOf(shared) };
  options.missing.push({ part: 'stores', what: 'tests that need MongoDB and Redis', why: shared.missing });
  return environmentOf(engines);
}

/**
 * One after the other, because an engine deletes the firewall rules of others when it starts. The modern engine is the first in the
 * result: a container on it costs a third less CPU time, and it does not deadlock (`engine-watch.ts`).
 */
async function openEngines(options: ServerOptions, owned: AsyncDisposableStack): Promise<TestEngine[]> {
  const { missing, packages, problems } = options;
  const engines: TestEngine[] = [];
  for (const kind of ['stable', 'modern'] satisfies EngineKind[]) {
    const engine = problems[kind] ?? (await tryToStart(kind, options, owned));
    if (typeof engine !== 'string') engines.unshift(engine);
    else if (kind === 'stable') await addHostEngine(engines, missing, engine);
    else missing.push({ part: 'modern-docker', what: 'stories on a modern Docker Engine', why: engine });
  }
  // After the start of an engine, which loads the kernel module that tracks connections.
  owned.use(await forgetEndedConnections());
  for (const { kind, version } of engines) packages.terminal.print(`Stories run on Docker Engine ${version} (${kind})`);
  return engines;
}

async function tryToStart(
  kind: EngineKind,
  { packages, restarted }: ServerOptions,
  owned: AsyncDisposableStack,
): Promise<TestEngine | string> {
  const { terminal } = packages;
  try {
    const engine = await terminal.withProgress(
      `Starting a ${kind} Docker Engine for tests`,
      async () => await startEngine(kind),
    );
    owned.defer(async () => {
      await terminal.withProgress(
        `Stopping the ${kind} Docker Engine`,
        async () => await engine[Symbol.asyncDispose](),
      );
    });
    owned.use(watchEngine(engine, (restarting) => restarted.push({ kind, restarting })));
    return { kind, host: engine.host, version: engine.version };
  } catch (error) {
    return messageOf(error);
  }
}

/** Uses the machine's own engine if none can be started, as on a laptop or a hosted CI runner. */
async function addHostEngine(engines: TestEngine[], missing: Missing[], problem: string): Promise<void> {
  const host = process.env['DOCKER_HOST'] || 'unix:///var/run/docker.sock';
  const problemOfHost = async () => {
    if ((await staticBusybox()) === undefined) return problem;
    if ((await pingEngine(host)) !== 'answers') return `${problem}, and no engine answers at ${host}`;
    return (await findProgram('docker')) === undefined ? 'there is no docker command' : undefined;
  };
  const why = await problemOfHost();
  if (why !== undefined) {
    missing.push({ part: 'docker', what: 'stories in containers', why });
    return;
  }
  const at = { env: { DOCKER_HOST: host } };
  const version = (await runCommand('docker', ['version', '--format', '{{.Server.Version}}'], at)).trim();
  engines.push({ kind: 'stable', host, version });
}

/** The variables with the engines. Tests of components run on the first engine, and tests for every engine also on the other. */
function environmentOf(engines: readonly TestEngine[]): Record<string, string> {
  return { [enginesVariable]: JSON.stringify(engines), ...(engines[0] && { DOCKER_HOST: engines[0].host }) };
}

/** The variables with the URLs of MongoDB and Redis, for stories and for tests of drivers. */
function urlsOf(shared: SharedServers): Record<string, string> {
  return {
    [sharedServersVariable]: JSON.stringify(shared),
    MONGODB_URL: shared.mongodbUrl,
    REDIS_URL: shared.redisUrl,
  };
}
