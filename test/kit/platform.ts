/** The whole platform as a process of its own, as an operator runs it, for stories that start, kill and restart it. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { tryCommand } from '../../setup/command.ts';
import type { TestEngine } from './docker-engine.ts';

const entry = fileURLToPath(new URL('../../main/berth.ts', import.meta.url));

/** What `berth serve --json` writes when it is up. */
const announcement = z.object({
  api_url: z.string(),
  registry: z.string(),
  proxy_url: z.string(),
  operations_url: z.string(),
  account: z.string(),
  token_file: z.string(),
  docker: z.boolean(),
});

export interface PlatformOptions {
  /** Without one, the platform runs without a worker. */
  readonly engine?: TestEngine | undefined;
  /** Further configuration, as `BERTH_...` variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A platform on free ports with its own data folder, on an engine that it may share with others. */
export class TestPlatform implements AsyncDisposable {
  readonly apiUrl: string;
  readonly registry: string;
  readonly proxyUrl: string;
  readonly operationsUrl: string;
  readonly account: string;
  readonly token: string;
  readonly tokenFile: string;
  readonly node: string;
  readonly dataFolder: string;
  readonly engine: TestEngine | undefined;
  readonly #settings: Readonly<Record<string, string>>;
  #process: PlatformProcess;

  /** Use `startPlatform`. */
  constructor(from: { options: PlatformOptions; place: Place; process: PlatformProcess; token: string }) {
    const said = from.process.announced;
    this.apiUrl = said.api_url;
    this.registry = said.registry;
    this.proxyUrl = said.proxy_url;
    this.operationsUrl = said.operations_url;
    this.account = said.account;
    this.tokenFile = said.token_file;
    this.token = from.token;
    this.node = from.place.node;
    this.dataFolder = from.place.dataFolder;
    this.engine = from.options.engine;
    this.#settings = environmentOf(from.options, from.place);
    this.#process = from.process;
  }

  get pid(): number | undefined {
    return this.#process.child.pid;
  }

  /** What it has written to its log since it was last started, as JSON lines. */
  get log(): string {
    return this.#process.log();
  }

  /** Ends it as a power cut would, as far as a process can tell: SIGKILL. */
  async kill(): Promise<void> {
    await endProcess(this.#process.child, 'SIGKILL');
  }

  /** Asks it to stop, and returns its exit code. */
  async stop(): Promise<number | null> {
    return await endProcess(this.#process.child, 'SIGTERM');
  }

  /** Starts it again, on the same ports and the same data, after `kill` or `stop`. */
  async restart(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    const ports = {
      BERTH_API_PORT: new URL(this.apiUrl).port,
      BERTH_REGISTRY_PORT: new URL(`http://${this.registry}`).port,
      BERTH_PROXY_PORT: new URL(this.proxyUrl).port,
      BERTH_OPERATIONS_PORT: new URL(this.operationsUrl).port,
    };
    this.#process = await startProcess({ ...this.#settings, ...ports, ...settings });
  }

  /** Stops it, and removes its backends, their network and its data. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await removeFromEngine(this.engine, this.node);
    await rm(this.dataFolder, { recursive: true, force: true });
  }
}

/** Starts a platform. Dispose it, with `await using` or in a hook. */
export async function startPlatform(options: PlatformOptions = {}): Promise<TestPlatform> {
  const place = {
    dataFolder: await mkdtemp(join(tmpdir(), 'berth-platform-')),
    node: `test-${randomBytes(4).toString('hex')}`,
  };
  try {
    const process = await startProcess(environmentOf(options, place));
    const token = (await readFile(process.announced.token_file, 'utf8')).trim();
    return new TestPlatform({ options, place, process, token });
  } catch (error) {
    await rm(place.dataFolder, { recursive: true, force: true });
    throw error;
  }
}

interface Place {
  readonly dataFolder: string;
  readonly node: string;
}

/** The environment of the process: nothing of what configures the person's own Berth. */
function environmentOf({ engine, settings }: PlatformOptions, { dataFolder, node }: Place): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
    DOCKER_HOST: engine?.host ?? `unix://${dataFolder}/no-engine.sock`,
    BERTH_DATA_FOLDER: dataFolder,
    BERTH_NODE: node,
    BERTH_API_PORT: '0',
    BERTH_REGISTRY_PORT: '0',
    BERTH_PROXY_PORT: '0',
    BERTH_OPERATIONS_PORT: '0',
    ...settings,
  };
}

interface PlatformProcess {
  readonly child: ChildProcess;
  readonly announced: z.infer<typeof announcement>;
  readonly log: () => string;
}

async function startProcess(env: Record<string, string>): Promise<PlatformProcess> {
  const child = spawn(process.execPath, [entry, 'serve', '--json'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('close', (code) => reject(new Error(`The platform ended with ${code} before it was up:\n${log}`)));
  });
  return { child, announced: announcement.parse(JSON.parse(line)), log: () => log };
}

async function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, 'exit') as Promise<[number | null]>;
  child.kill(signal);
  return (await exited)[0];
}

/** Backends outlive their platform, so they are ended here. */
async function removeFromEngine(engine: TestEngine | undefined, node: string): Promise<void> {
  if (!engine) return;
  const at = { env: { DOCKER_HOST: engine.host } };
  const { stdout } = await tryCommand('docker', ['ps', '--all', '--quiet', '--filter', `label=berth.node=${node}`], at);
  const containers = stdout.split('\n').filter(Boolean);
  if (containers.length > 0) await tryCommand('docker', ['rm', '--force', '--volumes', ...containers], at);
  await tryCommand('docker', ['network', 'rm', `berth-${node}`], at);
}
