/**
 * What `npm test` runs: installs what tests call, starts the Docker Engines and servers that they need, runs all tests once on a
 * PATH with nothing else on it, stops what it started, and ends with the counts as plain text, so that a run without tests is
 * seen. Arguments go to vitest.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { findProgram, runCommand } from '../setup/command.ts';
import { pingEngine } from '../setup/docker-engine.ts';
import { openTerminal } from '../setup/terminal.ts';
import type { Terminal } from '../setup/terminal.ts';
import { caddyProgram } from './compose/caddy-program.ts';
import { containedMongo } from './compose/mongodb-runtime.ts';
import { problem as composeProblem } from './compose/problem.ts';
import { installClients } from './kit/client-packages.ts';
import { startEngine } from './kit/docker-engine.ts';
import type { EngineKind, TestEngine } from './kit/docker-engine.ts';
import { installBusybox, installEngine, staticBusybox } from './kit/docker-packages.ts';
import { watchEngine } from './kit/engine-watch.ts';
import { enginesVariable } from './kit/engines.ts';
import { sharedGroundVariable } from './kit/grounds.ts';
import type { SharedGround } from './kit/grounds.ts';
import { parseRequired, requiredVariable, unmet } from './kit/required.ts';
import type { Missing, Required } from './kit/required.ts';
import { installSharedGround, openSharedGround } from './kit/shared-ground.ts';
import { hasPackages, installTools, linkPrograms, systemPath } from './kit/test-programs.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The part of vitest's JSON report that is counted. */
const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ status: z.string(), fullName: z.string() })),
    }),
  ),
});

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const required = parseRequired(process.env[requiredVariable]);
  const interrupted = onSignal();
  const terminal = openTerminal(process.stderr);
  const missing: Missing[] = [];
  const restarted: Restart[] = [];
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'));
  try {
    const reportFiles = [join(folder, 'report.json'), join(folder, 'report-again.json')] as const;
    const run = { terminal, missing, restarted, reportFiles, interrupted };
    const engineProblems = await installAll(run, join(folder, 'programs'));
    const code = await testOnEngines(args, run, engineProblems);
    for (const { what, why } of missing) terminal.say(`Skipped ${what}: ${why}`);
    return await conclude({ reportFiles, code, required, missing });
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
  readonly missing: Missing[];
  /** Gathers which engines had locked themselves up and were started anew. */
  readonly restarted: Restart[];
  /** Of the run, and of those files that are run again. */
  readonly reportFiles: readonly [string, string];
  readonly interrupted: Interruption;
}

/** Why no engine of a kind can be started. */
type EngineProblems = Readonly<Record<EngineKind, string | undefined>>;

/**
 * Installs what tests call, as far as this machine allows, and leaves nothing else on the PATH. Returns what engines lack; the
 * rest is gathered in `run.missing`.
 */
async function installAll({ terminal, missing }: TestRun, programs: string): Promise<EngineProblems> {
  const packaged = await hasPackages();
  const npm = await findProgram('npm');
  if (packaged) process.env['PATH'] = systemPath();
  const tools = await installTools(terminal);
  if (tools !== undefined)
    missing.push({ part: 'tools', what: 'what calls curl or openssl, or sets a clock', why: tools });
  const busybox = await installBusybox(terminal);
  const engines = {
    stable: busybox ?? (await installEngine('stable', terminal)),
    modern: busybox ?? (await installEngine('modern', terminal)),
  };
  for (const why of await installClients(terminal)) missing.push({ part: 'clients', ...why });
  // What it lacks is said once more where it is started.
  await installSharedGround(terminal);
  await terminal.during('Making images for the deployment with docker-compose', prepareStandIns);
  if (packaged) {
    await linkPrograms(programs, { node: process.execPath, ...(npm !== undefined && { npm }) });
    process.env['PATH'] = programs;
  }
  return engines;
}

/** Makes what takes longest of the stand-in images, which is kept. Their test says what it lacks. */
async function prepareStandIns(): Promise<void> {
  if ((await composeProblem()) !== undefined) return;
  await caddyProgram();
  await containedMongo();
}

/** Runs the tests, and returns the exit code once all engines are stopped again. */
async function testOnEngines(args: string[], run: TestRun, problems: EngineProblems): Promise<number> {
  await using owned = new AsyncDisposableStack();
  const engines = await openEngines(run, owned, problems);
  for (const { kind, version } of engines) run.terminal.say(`Stories run on Docker Engine ${version} (${kind})`);
  const shared = await openSharedGround(run.terminal, owned);
  if ('missing' in shared)
    run.missing.push({ part: 'stores', what: 'what needs MongoDB and Redis', why: shared.missing });
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
async function openEngines(run: TestRun, owned: AsyncDisposableStack, problems: EngineProblems): Promise<TestEngine[]> {
  const engines: TestEngine[] = [];
  for (const kind of ['stable', 'modern'] satisfies EngineKind[]) {
    const engine = problems[kind] ?? (await tryToStart(kind, run, owned));
    if (typeof engine !== 'string') engines.push(engine);
    else if (kind === 'stable') await addHostEngine(engines, run.missing, engine);
    else run.missing.push({ part: 'modern-docker', what: 'stories on a modern Docker Engine', why: engine });
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
async function addHostEngine(engines: TestEngine[], missing: Missing[], problem: string): Promise<void> {
  const host = process.env['DOCKER_HOST'] || 'unix:///var/run/docker.sock';
  const lack = async () => {
    if ((await staticBusybox()) === undefined) return problem;
    if ((await pingEngine(host)) !== 'answers') return `${problem}, and none answers at ${host}`;
    return (await findProgram('docker')) === undefined ? 'there is no docker command' : undefined;
  };
  const why = await lack();
  if (why !== undefined) {
    missing.push({ part: 'docker', what: 'stories in containers', why });
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

interface Outcome {
  readonly reportFiles: readonly string[];
  /** Of vitest. */
  readonly code: number;
  readonly required: Required;
  readonly missing: readonly Missing[];
}

/** Prints the counts. A run fails if vitest says so, if a test failed, if there was none, and if what is required was skipped. */
async function conclude({ reportFiles, code, required, missing }: Outcome): Promise<number> {
  const results = new Map<string, FileResult>();
  for (const file of reportFiles) {
    // A file that was run again counts as it went then.
    for (const result of (await readReport(file))?.testResults ?? []) results.set(result.name, result);
  }
  if (results.size === 0) {
    process.stderr.write('The tests ended without a report\n');
    return code || 1;
  }
  const withStatus = (...statuses: string[]) =>
    [...results.values()].flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status }) => statuses.includes(status))
        .map(({ fullName }) => `${relative(root, name)}: ${fullName}`),
    );
  // A file that cannot be loaded, or made ready, has no test that failed: those that it has count as skipped.
  const broken = [...results.values()].filter(
    ({ status, assertionResults }) =>
      status === 'failed' && assertionResults.every((assertion) => assertion.status !== 'failed'),
  );
  const [passed, failed] = [withStatus('passed').length, withStatus('failed').length + broken.length];
  const skipped = withStatus('skipped', 'pending', 'todo', 'disabled');
  const lacking = unmet(required, missing, skipped);
  for (const line of lacking) process.stderr.write(`Required by ${requiredVariable}, and skipped: ${line}\n`);
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
  return code || (failed > 0 || passed === 0 || lacking.length > 0 ? 1 : 0);
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
