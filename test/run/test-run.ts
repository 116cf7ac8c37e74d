/** A test run: units while servers start, then the other tests, then again the files that failed if an engine deadlocked. */
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Terminal } from '../../setup/terminal.ts';
import { AptPackages } from '../kit/packages/apt-packages.ts';
import type { Missing } from '../kit/required.ts';
import { installAll } from './installs.ts';
import type { Interruption } from './interruption.ts';
import type { RunOptions } from './options.ts';
import { openServers } from './servers.ts';
import type { Restart } from './servers.ts';
import { projectsFor, readReport, runVitest } from './vitest.ts';
import type { FileResult } from './vitest.ts';

export interface TestRunParts {
  readonly options: RunOptions;
  readonly terminal: Terminal;
  /** The folder for files of the run. */
  readonly folder: string;
  /** Collects the parts that cannot be tested here, with the reasons. */
  readonly missing: Missing[];
  readonly interrupted: Interruption;
}

export class TestRun {
  /** The last result of each file, by its path. */
  readonly results = new Map<string, FileResult>();
  readonly #parts: TestRunParts;
  /** The restarts of engines after deadlocks. */
  readonly #restarted: Restart[] = [];
  #reports = 0;

  constructor(parts: TestRunParts) {
    this.#parts = parts;
  }

  /** Runs the tests that the options choose, and returns the exit code when all servers have stopped. */
  async all(): Promise<number> {
    const { options, terminal, folder, missing, interrupted } = this.#parts;
    const projects = await projectsFor(options.vitestArgs, options.chosen, join(folder, 'files.json'));
    const others = projects.filter((name) => name !== 'unit');
    const units = async () => (projects.length === others.length ? 0 : await this.#vitest(['unit']));
    if (others.length === 0) return await units();

    const problems = await installAll(new AptPackages(terminal, options.install), missing, join(folder, 'programs'));
    await using owned = new AsyncDisposableStack();
    const servers = {
      packages: new AptPackages(others.length < projects.length ? withoutProgress(terminal) : terminal, 'no'),
      problems,
      missing,
      restarted: this.#restarted,
      needsEngines: others.some((name) => !name.startsWith('drivers')),
    };
    const [unitCode, environment] = await Promise.all([units(), openServers(servers, owned)]);
    if (interrupted.signal !== undefined) return 128 + constants.signals[interrupted.signal];
    const code = await this.#vitest(others, environment);
    return (await this.#repeatAfterDeadlock(code, environment)) || unitCode;
  }

  /** Repeats the files that failed if an engine deadlocked, and returns the final exit code. */
  async #repeatAfterDeadlock(code: number, environment: Readonly<Record<string, string>>): Promise<number> {
    if (code === 0 || this.#restarted.length === 0 || this.#parts.interrupted.signal !== undefined) return code;
    const failed = [...this.results.values()].filter(({ status }) => status === 'failed');
    if (failed.length === 0) return code;
    await Promise.allSettled(this.#restarted.map(({ restarting }) => restarting));
    const kinds = [...new Set(this.#restarted.map(({ kind }) => kind))];
    this.#parts.terminal.print(`The ${kinds.join(' and ')} Docker Engine deadlocked: repeating the files that failed`);
    return await this.#vitest(
      [],
      environment,
      failed.map(({ name }) => name),
    );
  }

  async #vitest(
    projects: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    args: readonly string[] = this.#parts.options.vitestArgs,
  ): Promise<number> {
    const { folder, interrupted } = this.#parts;
    const reportFile = join(folder, `report-${(this.#reports += 1)}.json`);
    const code = await runVitest({ args, projects, environment, reportFile, interrupted });
    for (const result of await readReport(reportFile)) this.results.set(result.name, result);
    return code;
  }
}

/** A terminal without progress lines, which would mix with the output of tests. */
function withoutProgress(terminal: Terminal): Terminal {
  return { ...terminal, withProgress: async (_what, work) => await work(() => {}) };
}
