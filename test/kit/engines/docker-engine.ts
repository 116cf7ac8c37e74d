/**
 * Real Docker Engines for tests, as root on Debian and Ubuntu. `stable` is the machine's package docker.io; `modern` is that of
 * Debian's unstable suite, unpacked into a cache folder. Each engine has its own data, bridge and containers, so several can run
 * on one machine, as two nodes.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, runCommand, tryCommand } from '../../../setup/command.ts';
import { pingEngine } from '../../../setup/docker-engine.ts';
import { modernFolder } from '../packages/docker-packages.ts';
import { endedWithParent, endProcess } from '../machine/end-process.ts';
import { freeze } from '../machine/frozen-process.ts';
import { testEngines } from './engines.ts';

export type EngineKind = 'stable' | 'modern';

/** An engine that tests use. */
export interface TestEngine {
  readonly kind: EngineKind;
  /** Its address, for DOCKER_HOST. */
  readonly host: string;
  readonly version: string;
}

/** An engine that a test controls. Disposing it stops it, and removes everything it left on the machine. */
export interface RunningEngine extends TestEngine, AsyncDisposable {
  /** Kills it. Its containers continue. */
  kill(): void;
  /** Kills it, and starts it again with the same data. */
  restart(): Promise<void>;
  /** Kills its containerd, as the kernel does when memory is short. The engine starts a new containerd within seconds. */
  killContainerd(): Promise<void>;
  /** Freezes it, like an engine in a deadlock, until the returned function is called. */
  freeze(): Promise<() => void>;
}

/** A cold start takes two to five seconds. */
const startTimeoutMs = 60_000;

/** The engine stops all containers at the same time, and kills them after ten seconds. */
const stopTimeoutMs = 60_000;

const listTimeoutMs = 10_000;

/** The number of engines that fit into the address range below. */
const maxEngines = 64;

/** The file in the folder of an engine with the name of its bridge. */
export const bridgeFile = 'berth-test-bridge';

/**
 * Arguments of an engine that starts while others run, and whose containers only this machine reaches. Without them, an engine that
 * starts deletes the firewall rules of all others, and containers on their networks can no longer reach each other.
 */
export const withoutFirewall = ['--iptables=false', '--ip6tables=false'] as const;

/** Whether a test of this run can start its own engine. */
export async function canStartEngines(): Promise<boolean> {
  return testEngines().length > 0 && process.getuid?.() === 0 && (await findProgram('dockerd')) !== undefined;
}

/** Starts an engine with additional arguments. Its packages must be installed (`installEngine`). */
export async function startEngine(kind: EngineKind, args: readonly string[] = []): Promise<RunningEngine> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `berth-${kind}-engine-`));
  opening.defer(async () => await removeFolder(folder));
  const { number, bridge } = await createBridge();
  opening.defer(async () => await removeBridge(bridge));
  await writeFile(join(folder, bridgeFile), bridge);
  const host = `unix://${folder}/docker.sock`;
  const start = async (more: readonly string[]) =>
    await startDaemon(kind, { folder, bridge, host, args: [...args, ...more] });
  let child = await start(['--default-address-pool', `base=10.232.${number * 4}.0/22,size=24`]);
  opening.defer(async () => {
    const bridges = await networkBridges(host);
    await endProcess(child, 'SIGTERM', stopTimeoutMs);
    await killShims(folder);
    for (const each of bridges) await removeBridge(each);
  });
  await untilAnswers(child, host, join(folder, 'log'));
  const version = (await runCommand('docker', ['version', '--format', '{{.Server.Version}}'], at(host))).trim();
  const owned = opening.move();
  const containerdPid = join(folder, 'exec/containerd/containerd.pid');
  const restart = async () => {
    await endProcess(child, 'SIGKILL');
    // Its containerd ended with it, but may remain as a zombie, for which the engine would wait.
    await rm(containerdPid, { force: true });
    // With a pool of addresses, an engine that has run before deletes `docker0`, which may belong to the machine's own engine.
    child = await start([]);
    await untilAnswers(child, host, join(folder, 'log'));
  };
  return {
    kind,
    host,
    version,
    kill: () => void child.kill('SIGKILL'),
    restart,
    killContainerd: async () => void process.kill(Number(await readFile(containerdPid, 'utf8')), 'SIGKILL'),
    freeze: async () => await freeze(child),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface DaemonOptions {
  readonly folder: string;
  readonly bridge: string;
  readonly host: string;
  readonly args: readonly string[];
}

async function startDaemon(
  kind: EngineKind,
  { folder, bridge, host, args: more }: DaemonOptions,
): Promise<ChildProcess> {
  const path = [process.env['PATH'] ?? '', '/usr/sbin', '/sbin'];
  if (kind === 'modern') path.unshift(join(modernFolder(), 'usr/bin'), join(modernFolder(), 'usr/sbin'));
  const dockerd = kind === 'modern' ? join(modernFolder(), 'usr/sbin/dockerd') : await findProgram('dockerd');
  await using log = await open(join(folder, 'log'), 'a');
  const [program, ...args] = endedWithParent(dockerd ?? 'dockerd', 'setpriv');
  args.push('--data-root', join(folder, 'data'));
  args.push('--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid'), '--host', host, '--bridge', bridge);
  args.push('--containerd-namespace', bridge, '--containerd-plugins-namespace', `${bridge}-plugins`);
  args.push(...more);
  // In its own process group, so that Ctrl-C reaches only the tests, which then stop the engine.
  const stdio = ['ignore', log.fd, log.fd] as const;
  return spawn(program, args, {
    detached: true,
    env: { ...process.env, PATH: path.join(delimiter) },
    stdio: [...stdio],
  });
}

async function untilAnswers(child: ChildProcess, host: string, logFile: string): Promise<void> {
  const deadline = performance.now() + startTimeoutMs;
  while (performance.now() < deadline && child.exitCode === null) {
    if ((await pingEngine(host)) === 'answers') return;
    await delay(100);
  }
  const lines = (await readFile(logFile, 'utf8')).trim().split('\n').slice(-8);
  throw new Error(`The Docker Engine for tests did not start:\n${lines.join('\n')}`);
}

/** Kills shims that an engine has left: it removes a container whose containerd was killed, but not the container's shim. */
export async function killShims(folder: string): Promise<void> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    // The process may have ended meanwhile.
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (!/^\S*containerd-shim/.test(command) || !command.includes(`\0${folder}/`)) continue;
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

/** Creates a bridge, whose name also reserves its address range. */
async function createBridge(): Promise<{ number: number; bridge: string }> {
  for (let number = 0; number < maxEngines; number++) {
    const bridge = `berthtest${number}`;
    const { code } = await tryCommand('ip', ['link', 'add', bridge, 'type', 'bridge']);
    if (code !== 0) continue;
    await runCommand('ip', ['addr', 'add', `10.231.${number}.1/24`, 'dev', bridge]);
    await runCommand('ip', ['link', 'set', bridge, 'up']);
    return { number, bridge };
  }
  throw new Error('Cannot create a bridge for a Docker Engine: run as root, and delete left-over berthtest bridges');
}

/** The bridges of an engine's networks, which the engine does not remove when it stops. */
async function networkBridges(host: string): Promise<string[]> {
  const args = ['network', 'ls', '--filter', 'driver=bridge', '--filter', 'type=custom', '--quiet'];
  const linesOf = async (more: readonly string[]) => {
    const { stdout } = await tryCommand('docker', [...more], {
      ...at(host),
      signal: AbortSignal.timeout(listTimeoutMs),
    });
    return stdout.split('\n').filter(Boolean);
  };
  try {
    const ids = await linesOf(args);
    const named = '{{index .Options "com.docker.network.bridge.name"}}';
    const names = ids.length === 0 ? [] : await linesOf(['network', 'inspect', '--format', named, ...ids]);
    return [...ids.map((id) => `br-${id}`), ...names];
  } catch {
    // An engine in a deadlock (`engine-watch.ts`) does not answer, so its bridges remain.
    return [];
  }
}

/** Removes a bridge, and the firewall rules that name it. */
export async function removeBridge(bridge: string): Promise<void> {
  await tryCommand('ip', ['link', 'delete', bridge]);
  const { stdout } = await tryCommand('iptables-save', []);
  let table = 'filter';
  for (const line of stdout.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    const words = line.split(' ');
    if (words[0] !== '-A' || !words.includes(bridge)) continue;
    await tryCommand('iptables', ['--wait', '-t', table, '-D', ...words.slice(1)]);
  }
}

/** Unmounts what an engine left in its folder, and removes the folder. */
export async function removeFolder(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
  for (const mount of mounts.filter((path) => path.startsWith(`${folder}/`)).reverse()) {
    await tryCommand('umount', ['--lazy', mount]);
  }
  await rm(folder, { recursive: true, force: true });
}

function at(host: string) {
  return { env: { DOCKER_HOST: host } };
}
