/**
 * What `npm test` runs: makes sure of the Docker Engines that stories need, runs all tests once, stops what it started, and
 * ends with the counts as plain text, so that a run without tests is seen. Arguments go to vitest.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { runCommand } from '../setup/command.ts';
import { pingEngine } from '../setup/docker-engine.ts';
import { openTerminal } from '../setup/terminal.ts';
import type { Terminal } from '../setup/terminal.ts';
import { installClients } from './kit/client-packages.ts';
import { startEngine } from './kit/docker-engine.ts';
import type { EngineKind, TestEngine } from './kit/docker-engine.ts';
import { installBusybox, installEngine } from './kit/docker-packages.ts';
import { watchEngine } from './kit/engine-watch.ts';
import { enginesVariable } from './kit/engines.ts';
import { sharedGroundVariable } from './kit/grounds.ts';
import type { SharedGround } from './kit/grounds.ts';
import { openSharedGround } from './kit/shared-ground.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The part of vitest's JSON report that is counted. */
const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string() })),
    }),
  ),
});

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const interrupted = onSignal();
  const terminal = openTerminal(process.stderr);
  const skipped: string[] = [];
  const restarted: Restart[] = [];
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'));
  try {
    const reportFiles = [join(folder, 'report.json'), join(folder, 'report-again.json')] as const;
    const code = await testOnEngines(args, { terminal, skipped, restarted, reportFiles, interrupted });
    for (const line of skipped) terminal.say(`Skipped ${line}`);
    return await conclude(reportFiles, code);
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Restart {
  readonly kind: EngineKind;
  readonly restarting: Promise<void>;
}

interface TestRun {
  readonly terminal: Terminal;
  /** Gathers what cannot be tested here, and why. */
  readonly skipped: string[];
  /** Gathers which engines had locked themselves up and were started anew. */
  readonly restarted: Restart[];
  /** Of the run, and of those files that are run again. */
  readonly reportFiles: readonly [string, string];
  readonly interrupted: Interruption;
}

/** Runs the tests, and returns the exit code once all engines are stopped again. */
async function testOnEngines(args: string[], run: TestRun): Promise<number> {
  await using owned = new AsyncDisposableStack();
  const problem = await installBusybox(run.terminal);
  if (problem !== undefined) run.skipped.push(`stories in containers: ${problem}`);
  const engines = problem === undefined ? await openEngines(run, owned) : [];
  for (const { kind, version } of engines) run.terminal.say(`Stories run on Docker Engine ${version} (${kind})`);
  run.skipped.push(...(await installClients(run.terminal)));
  const shared = await openSharedGround(run.terminal, owned);
  if ('missing' in shared) run.skipped.push(`what needs MongoDB and Redis: ${shared.missing}`);
  if (run.interrupted.signal !== undefined) return 128 + constants.signals[run.interrupted.signal];
  const environment = { ...environmentOf(engines), ...('missing' in shared ? {} : urlsOf(shared)) };
  const [reportFile, secondReportFile] = run.reportFiles;
  const code = await runVitest(args, environment, { ...run, reportFile });
  if (code === 0 || run.restarted.length === 0 || run.interrupted.signal !== undefined) return code;
  const failed = (await readReport(reportFile))?.testResults.filter(({ status }) => status === 'failed') ?? [];
  if (failed.length === 0) return code;
  await Promise.allSettled(run.restarted.map(({ restarting }) => restarting));
  const kinds = [...new Set(run.restarted.map(({ kind }) => kind))];
  run.terminal.say(`The ${kinds.join(' and ')} Docker Engine had locked itself up: what failed is run again`);
  return await runVitest(
    failed.map(({ name }) => name),
    environment,
    { ...run, reportFile: secondReportFile },
  );
}

/** Starts an engine of each kind, as far as this machine allows. */
async function openEngines(run: TestRun, owned: AsyncDisposableStack): Promise<TestEngine[]> {
  const { terminal, skipped } = run;
  const engines: TestEngine[] = [];
  for (const kind of ['stable', 'modern'] satisfies EngineKind[]) {
    const problem = await installEngine(kind, terminal);
    const engine = problem === undefined ? await tryToStart(kind, run, owned) : problem;
    if (typeof engine !== 'string') engines.push(engine);
    else if (kind === 'stable') await addHostEngine(engines, skipped, engine);
    else skipped.push(`stories on a modern Docker Engine: ${engine}`);
  }
  return engines;
}

async function tryToStart(
  kind: EngineKind,
  { terminal, restarted }: TestRun,
  owned: AsyncDisposableStack,
): Promise<TestEngine | string> {
  try {
    const engine = await terminal.during(
      `Starting a ${kind} Docker Engine for tests`,
      async () => await startEngine(kind),
    );
    owned.defer(async () => {
      await terminal.during(`Stopping the ${kind} Docker Engine`, async () => await engine[Symbol.asyncDispose]());
    });
    owned.use(watchEngine(engine, (restarting) => restarted.push({ kind, restarting })));
    return { kind, host: engine.host, version: engine.version };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Where none can be started, the engine that this machine runs anyway serves: a laptop, a hosted CI runner. */
async function addHostEngine(engines: TestEngine[], skipped: string[], problem: string): Promise<void> {
  const host = process.env['DOCKER_HOST'] || 'unix:///var/run/docker.sock';
  if ((await pingEngine(host)) !== 'answers') {
    skipped.push(`stories on the machine's Docker Engine: ${problem}, and none answers at ${host}`);
    return;
  }
  const at = { env: { DOCKER_HOST: host } };
  const version = (await runCommand('docker', ['version', '--format', '{{.Server.Version}}'], at)).trim();
  engines.push({ kind: 'stable', host, version });
}

/** How tests learn which engines there are; the rooms' own tests run on one. */
function environmentOf(engines: readonly TestEngine[]): Record<string, string> {
  return { [enginesVariable]: JSON.stringify(engines), ...(engines[0] && { DOCKER_HOST: engines[0].host }) };
}

/** How stories, and the drivers' own tests, learn where MongoDB and Redis are. */
function urlsOf(shared: SharedGround): Record<string, string> {
  return {
    [sharedGroundVariable]: JSON.stringify(shared),
    MONGODB_URL: shared.mongodbUrl,
    REDIS_URL: shared.redisUrl,
  };
}

async function runVitest(
  args: string[],
  environment: Readonly<Record<string, string>>,
  { reportFile, interrupted }: { readonly reportFile: string; readonly interrupted: Interruption },
): Promise<number> {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', ...reporters, ...args], {
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

/** Prints the counts. A run fails if vitest says so, if a test failed, and if there was none. */
async function conclude(reportFiles: readonly string[], code: number): Promise<number> {
  const results = new Map<string, FileResult>();
  for (const file of reportFiles) {
    // A file that was run again counts as it went then.
    for (const result of (await readReport(file))?.testResults ?? []) results.set(result.name, result);
  }
  if (results.size === 0) {
    process.stderr.write('The tests ended without a report\n');
    return code || 1;
  }
  const count = (...statuses: string[]) =>
    [...results.values()]
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => statuses.includes(status)).length;
  // A file that cannot be loaded, or made ready, has no test that failed: those that it has count as skipped.
  const broken = [...results.values()].filter(
    ({ status, assertionResults }) =>
      status === 'failed' && assertionResults.every((assertion) => assertion.status !== 'failed'),
  );
  const [passed, failed] = [count('passed'), count('failed') + broken.length];
  const skipped = count('skipped', 'pending', 'todo', 'disabled');
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
  return code || (failed > 0 || passed === 0 ? 1 : 0);
}

type FileResult = z.infer<typeof report>['testResults'][number];

async function readReport(file: string): Promise<z.infer<typeof report> | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : report.parse(JSON.parse(text));
}

interface Interruption {
  signal: NodeJS.Signals | undefined;
  child: ChildProcess | undefined;
}

/** Hands signals on to the tests, and lets this process live until it has stopped its engines. */
function onSignal(): Interruption {
  const interrupted: Interruption = { signal: undefined, child: undefined };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      interrupted.signal = signal;
      interrupted.child?.kill(signal);
    });
  }
  return interrupted;
}
