/**
 * Real Docker Engines for tests, as root on Debian and Ubuntu. `stable` is what the machine's package docker.io gives;
 * `modern` is that of Debian's unstable suite, unpacked into a cache folder. Each engine keeps its data, its bridge and its
 * containers to itself, so several run side by side: two nodes on one machine.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, runCommand, tryCommand } from '../../../setup/command.ts';
import { pingEngine } from '../../../setup/docker-engine.ts';
import { modernFolder } from '../packages/docker-packages.ts';
import { freeze } from '../machine/frozen-process.ts';

export type EngineKind = 'stable' | 'modern';

/** What stories know about an engine. */
export interface TestEngine {
  readonly kind: EngineKind;
  /** As DOCKER_HOST says it. */
  readonly host: string;
  readonly version: string;
}

/** An engine of our own. Disposing it stops it and removes all that it left on the machine. */
export interface RunningEngine extends TestEngine, AsyncDisposable {
  /** Ends it without a chance to stop its containers, which go on. */
  kill(): void;
  /** Kills it, and starts it again on what it had. */
  restart(): Promise<void>;
  /** Kills the containerd below it, as the kernel does when memory is short. The engine starts another one, which takes seconds. */
  killContainerd(): Promise<void>;
  /** Stops answering, as an engine that has locked itself up, until the returned function is called. */
  freeze(): Promise<() => void>;
}

/** A cold start takes two to five seconds. */
const startTimeoutMs = 60_000;

/** Containers get ten seconds each before the engine kills them, all at the same time. */
const stopTimeoutMs = 60_000;

const listTimeoutMs = 10_000;

/** As many engines as the address range below has room for. */
const maxEngines = 64;

/**
 * Arguments of an engine that is started beside others, whose containers are reached from this machine alone: at its start an
 * engine deletes the firewall rules of all others, and containers on their networks stop to reach each other.
 */
export const withoutFirewall = ['--iptables=false', '--ip6tables=false'] as const;

/** Starts an engine, with further arguments for it. Its packages must be there (`installEngine`). */
export async function startEngine(kind: EngineKind, args: readonly string[] = []): Promise<RunningEngine> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `berth-${kind}-engine-`));
  opening.defer(async () => await removeFolder(folder));
  const { number, bridge } = await takeBridge();
  opening.defer(async () => await removeBridge(bridge));
  const host = `unix://${folder}/docker.sock`;
  const start = async () => await startDaemon(kind, { folder, number, bridge, host, args });
  let child = await start();
  opening.defer(async () => {
    const bridges = await networkBridges(host);
    await stopDaemon(child);
    for (const each of bridges) await removeBridge(each);
  });
  await untilAnswers(child, host, join(folder, 'log'));
  const version = (await runCommand('docker', ['version', '--format', '{{.Server.Version}}'], at(host))).trim();
  const owned = opening.move();
  const containerdPid = join(folder, 'exec/containerd/containerd.pid');
  const restart = async () => {
    await endDaemon(child, 'SIGKILL');
    // Its containerd went with it, and may be a zombie where nobody buries it: then it would be waited for.
    await rm(containerdPid, { force: true });
    child = await start();
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

interface Place {
  readonly folder: string;
  readonly number: number;
  readonly bridge: string;
  readonly host: string;
  readonly args: readonly string[];
}

async function startDaemon(
  kind: EngineKind,
  { folder, number, bridge, host, args: more }: Place,
): Promise<ChildProcess> {
  const path = [process.env['PATH'] ?? '', '/usr/sbin', '/sbin'];
  if (kind === 'modern') path.unshift(join(modernFolder(), 'usr/bin'), join(modernFolder(), 'usr/sbin'));
  const dockerd = kind === 'modern' ? join(modernFolder(), 'usr/sbin/dockerd') : await findProgram('dockerd');
  await using log = await open(join(folder, 'log'), 'a');
  // Should this process be killed, the kernel ends the engine; nobody else would.
  const args = ['--pdeathsig', 'TERM', dockerd ?? 'dockerd', '--data-root', join(folder, 'data')];
  args.push('--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid'), '--host', host, '--bridge', bridge);
  args.push('--containerd-namespace', bridge, '--containerd-plugins-namespace', `${bridge}-plugins`);
  args.push('--default-address-pool', `base=10.232.${number * 4}.0/22,size=24`);
  args.push(...more);
  // A group of its own: Ctrl-C reaches the tests first, and they stop the engine when they are done with it.
  const stdio = ['ignore', log.fd, log.fd] as const;
  return spawn('setpriv', args, {
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
  throw new Error(`A Docker Engine for tests does not start:\n${lines.join('\n')}`);
}

async function stopDaemon(child: ChildProcess): Promise<void> {
  const late = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await endDaemon(child, 'SIGTERM');
  clearTimeout(late);
}

async function endDaemon(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill(signal);
  await exited;
}

/** Makes a bridge that nobody has; its name is a reservation too. */
async function takeBridge(): Promise<{ number: number; bridge: string }> {
  for (let number = 0; number < maxEngines; number++) {
    const bridge = `berthtest${number}`;
    const { code } = await tryCommand('ip', ['link', 'add', bridge, 'type', 'bridge']);
    if (code !== 0) continue;
    await runCommand('ip', ['addr', 'add', `10.231.${number}.1/24`, 'dev', bridge]);
    await runCommand('ip', ['link', 'set', bridge, 'up']);
    return { number, bridge };
  }
  throw new Error('No bridge can be made for a Docker Engine: are you root, or are there left-over berthtest bridges?');
}

/** The bridges of an engine's networks, which it leaves behind. */
async function networkBridges(host: string): Promise<string[]> {
  const args = ['network', 'ls', '--filter', 'driver=bridge', '--filter', 'type=custom', '--format', '{{.ID}}'];
  const { stdout } = await tryCommand('docker', args, {
    ...at(host),
    signal: AbortSignal.timeout(listTimeoutMs),
  }).catch(
    // One that has locked itself up (`engine-watch.ts`) leaves its bridges.
    () => ({ stdout: '' }),
  );
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((id) => `br-${id}`);
}

/** Removes a bridge, and the firewall rules that name it. */
async function removeBridge(bridge: string): Promise<void> {
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

/** Removes an engine's folder, after what it left mounted there. */
async function removeFolder(folder: string): Promise<void> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
  for (const mount of mounts.filter((path) => path.startsWith(`${folder}/`)).reverse()) {
    await tryCommand('umount', ['--lazy', mount]);
  }
  await rm(folder, { recursive: true, force: true });
}

function at(host: string) {
  return { env: { DOCKER_HOST: host } };
}
