/** Runs vitest in its own process: lists the projects that have files for given arguments, and runs tests. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { runCommand } from '../../setup/command.ts';
import type { Interruption } from './interruption.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const program = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));

/** The used part of vitest's JSON report. */
const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      startTime: z.number(),
      endTime: z.number(),
      assertionResults: z.array(
        z.object({ status: z.string(), ancestorTitles: z.array(z.string()), title: z.string() }),
      ),
    }),
  ),
});

export type FileResult = z.infer<typeof report>['testResults'][number];

const listed = z.array(z.object({ projectName: z.string() }));

/** The projects that have files for these arguments. vitest writes the list to a file, because its output may contain other lines. */
export async function projectsFor(
  args: readonly string[],
  chosen: readonly string[],
  listFile: string,
): Promise<string[]> {
  const listing = [program, 'list', '--filesOnly', `--json=${listFile}`, ...projectArgs(chosen), ...args];
  await runCommand(process.execPath, listing, { cwd: root });
  const files = listed.parse(JSON.parse(await readFile(listFile, 'utf8')));
  return [...new Set(files.map(({ projectName }) => projectName))];
}

export interface VitestRun {
  readonly args: readonly string[];
  readonly projects: readonly string[];
  /** Variables in addition to those of this process. */
  readonly environment: Readonly<Record<string, string>>;
  readonly reportFile: string;
  readonly interrupted: Interruption;
}

/** Runs tests, and returns vitest's exit code. */
export async function runVitest({ args, projects, environment, reportFile, interrupted }: VitestRun): Promise<number> {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const child = spawn(process.execPath, [program, 'run', ...reporters, ...projectArgs(projects), ...args], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  interrupted.child = child;
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? 'SIGTERM']));
  });
}

/** The results of each file in a report of vitest; empty if vitest ended before it wrote one. */
export async function readReport(file: string): Promise<FileResult[]> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return [];
  const byFile = Map.groupBy(report.parse(JSON.parse(text)).testResults, ({ name }) => name);
  return Array.from(byFile.values(), merged);
}

/** Merges the results of a file that ran in two projects, one for each engine. */
function merged(results: FileResult[]): FileResult {
  return results.reduce((one, other) => ({
    name: one.name,
    status: one.status === 'failed' ? one.status : other.status,
    startTime: Math.min(one.startTime, other.startTime),
    endTime: Math.max(one.endTime, other.endTime),
    assertionResults: [...one.assertionResults, ...other.assertionResults],
  }));
}

/** The arguments that choose projects, including `docker-other` and `drivers-apart`, which exist only in some runs. */
function projectArgs(projects: readonly string[]): string[] {
  return projects.map((name) => `--project=${name === 'docker' || name === 'drivers' ? `${name}*` : name}`);
}
