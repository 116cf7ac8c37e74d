/** The whole platform as an operator runs it, for stories that start, kill and restart it: one process, or one per role. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { findProgram } from '../../../setup/command.ts';
import { removeFromEngine } from '../engines/engine-client.ts';
import { endedWithParent, endProcess } from '../machine/end-process.ts';
import { freeze } from '../machine/frozen-process.ts';
import { environmentsOf, twinOf } from './environments.ts';
import type { Environment, Place, PlatformOptions, ProcessName } from './environments.ts';

const entry = fileURLToPath(new URL('../../../main/berth.ts', import.meta.url));

/** What `berth serve --json` prints when it is ready. */
const announcement = z.object({
  api_url: z.string(),
  registry: z.string(),
  proxy_url: z.string(),
  operations_url: z.string(),
  account: z.string().optional(),
  token_file: z.string().optional(),
});

type Announcement = z.infer<typeof announcement>;

/** A platform on free ports with its own data folder, on an engine that other platforms may use, too. */
export class TestPlatform implements AsyncDisposable {
  readonly node: string;
  readonly dataFolder: string;
  readonly apiUrl: string;
  readonly registry: string;
  readonly proxyUrl: string;
  readonly account: string;
  readonly token: string;
  /** What the process with the API printed when it was first ready. */
  readonly announced: Announcement;
  readonly #options: PlatformOptions;
  readonly #environments: ReadonlyMap<ProcessName, Environment>;
  readonly #processes: Map<ProcessName, PlatformProcess>;

  /** Use `startPlatform`. */
  constructor(from: Parts) {
    this.node = from.place.node;
    this.dataFolder = from.place.dataFolder;
    this.apiUrl = from.api.api_url;
    this.registry = from.api.registry;
    this.proxyUrl = from.api.proxy_url;
    this.account = from.api.account ?? '';
    this.token = from.token;
    this.announced = from.api;
    this.#options = from.options;
    this.#environments = from.environments;
    this.#processes = from.processes;
  }

  /** The only process, or that of the API. */
  get pid(): number | undefined {
    return this.#api.child.pid;
  }

  /** The process with the registry. */
  get registryPid(): number | undefined {
    return this.#processes.get(this.#registryName)?.child.pid;
  }

  /** The process with this name. */
  pidOf(name: ProcessName): number {
    return this.#processes.get(name)?.child.pid ?? -1;
  }

  /** The operations listener of the only process, or of the API. */
  get operationsUrl(): string {
    return this.#api.announced.operations_url;
  }

  /** The operations listener of the process with the registry. */
  get registryOperationsUrl(): string {
    return this.announcedBy(this.#registryName).operations_url;
  }

  /** The environment for commands that connect to the process with the registry. */
  get environment(): Readonly<Record<string, string>> {
    const { port } = new URL(this.registryOperationsUrl);
    return { ...this.#environments.get(this.#registryName), BERTH_OPERATIONS_PORT: port };
  }

  /** The logs of its processes since their last start, as JSON lines. */
  get log(): string {
    return Array.from(this.#processes.values(), (each) => each.log()).join('');
  }

  /** The names of its processes. */
  get processNames(): ProcessName[] {
    return [...this.#environments.keys()];
  }

  /** What a process printed when it was ready. */
  announcedBy(name: ProcessName): Announcement {
    const process = this.#processes.get(name);
    if (!process) throw new Error(`There is no process "${name}"`);
    return process.announced;
  }

  /** Kills the named processes, or all of them (SIGKILL), which is like a power cut to a process. */
  async kill(names: readonly ProcessName[] = this.processNames): Promise<void> {
    await Promise.all(names.map((name) => this.#end(name, 'SIGKILL')));
  }

  /** Freezes all processes until the returned function is called. */
  async freeze(): Promise<() => void> {
    const thaws = await Promise.all(Array.from(this.#processes.values(), ({ child }) => freeze(child)));
    return () => thaws.forEach((thaw) => thaw());
  }

  /** Stops all processes with SIGTERM, and returns the first exit code that is not 0, or 0. */
  async stop(): Promise<number | null> {
    const codes = await Promise.all(this.processNames.map((name) => this.#end(name, 'SIGTERM')));
    return codes.find((code) => code !== 0) ?? 0;
  }

  /** Starts the named processes again, or all of them, on the same ports and data, after `kill` or `stop`. */
  async restart(names: readonly ProcessName[] = this.processNames): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        const environment = this.#environments.get(name);
        if (environment) this.#processes.set(name, await startProcess(name, environment));
      }),
    );
  }

  /** Stops the platform, and removes its backends, their network and its data. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await removeFromEngine(this.#options.engine, this.node);
    await removeFromEngine(this.#options.twinsOn, twinOf(this.node));
    await rm(this.dataFolder, { recursive: true, force: true });
  }

  get #registryName(): ProcessName {
    return this.#nameWith('registry');
  }

  get #api(): PlatformProcess {
    const process = this.#processes.get(this.#nameWith('api'));
    if (!process) throw new Error('No process has the API');
    return process;
  }

  /** The first process with a role. */
  #nameWith(role: 'registry' | 'api'): ProcessName {
    const name = this.processNames.find((each) => each.split(',').includes(role));
    if (!name) throw new Error(`No process has the role "${role}"`);
    return name;
  }

  async #end(name: ProcessName, signal: NodeJS.Signals): Promise<number | null> {
    const process = this.#processes.get(name);
    return process ? await endProcess(process.child, signal) : null;
  }
}

interface Parts {
  readonly options: PlatformOptions;
  readonly place: Place;
  readonly environments: ReadonlyMap<ProcessName, Environment>;
  readonly processes: Map<ProcessName, PlatformProcess>;
  /** What the process with the API printed. */
  readonly api: Announcement;
  readonly token: string;
}

/** Starts a platform. Dispose it, with `await using` or in a hook. */
export async function startPlatform(options: PlatformOptions = {}): Promise<TestPlatform> {
  const place = {
    dataFolder: await mkdtemp(join(tmpdir(), 'berth-platform-')),
    node: `test-${randomBytes(4).toString('hex')}`,
  };
  const processes = new Map<ProcessName, PlatformProcess>();
  try {
    const environments = await environmentsOf(options, place);
    for (const [name, environment] of environments)
      if (!options.later?.includes(name)) processes.set(name, await startProcess(name, environment));
    const announcements = Array.from(processes.values(), ({ announced }) => announced);
    const api = options.joins?.announced ?? announcements.find(({ token_file }) => token_file);
    if (!api?.token_file) throw new Error('No process printed the file of the access token');
    const token = (await readFile(api.token_file, 'utf8')).trim();
    return new TestPlatform({ options, place, environments, processes, api, token });
  } catch (error) {
    for (const { child } of processes.values()) await endProcess(child, 'SIGKILL');
    await removeFromEngine(options.engine, place.node);
    await rm(place.dataFolder, { recursive: true, force: true });
    throw error;
  }
}

interface PlatformProcess {
  readonly child: ChildProcess;
  readonly announced: Announcement;
  readonly log: () => string;
}

async function startProcess(name: ProcessName, env: Environment): Promise<PlatformProcess> {
  // With the memory settings of `setup/run` and the Dockerfile.
  const args = ['--max-semi-space-size=2', entry, 'serve', '--json', '--roles', name.replace(/2$/, '')];
  const [program, ...more] = endedWithParent(process.execPath, await findProgram('setpriv'), 'KILL');
  const child = spawn(program, [...more, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (log += chunk));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('close', (code) => reject(new Error(`${name} ended with ${code} before it was ready:\n${log}`)));
  });
  return { child, announced: announcement.parse(JSON.parse(line)), log: () => log };
}
