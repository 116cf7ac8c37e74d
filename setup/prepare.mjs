/**
 * Prepares the project's folder: installs the dependencies of package-lock.json, and a Node.js that can run TypeScript if the
 * host's cannot. Plain JavaScript without dependencies, because it runs before either is installed, and on Node.js 18, too.
 * For a long-running program, it also compiles the sources if they have changed. If nothing is missing, it prints nothing and takes
 * milliseconds.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const modules = join(root, 'node_modules');
const stampFile = join(modules, '.berth-stamp');
const lockFolder = join(root, '.berth', 'setup.lock');
const compileCache = process.env.NODE_COMPILE_CACHE || join(modules, '.cache', 'compile');

/** The program that setup/run starts afterwards. */
const program = process.argv[2];

/** Long-running programs, which should use little memory. */
const longRunning = ['setup/start.ts', 'main/berth.ts', 'test/run.ts'];

/** The folders with their sources. */
const sourceFolders = ['contract', 'core', 'model', 'registry', 'api', 'worker', 'proxy', 'client', 'main', 'setup'];

/** Set in the image, which has no development dependencies. */
const isProduction = process.env.NODE_ENV === 'production';

/** The first release in which type stripping and SQLite print no warnings. */
const neededNode = [24, 15];

/** The Node.js version that is installed with the dependencies if the host's is too old. */
const suppliedNode = '24.21.0';

/** How often the owner of the lock touches it. After more than three missed touches the owner is considered dead. */
const lockTouchMs = 2_000;
const lockStaleMs = 10_000;

/** How often a line of progress is printed. */
const progressMs = 10_000;

/** How many of npm's last lines an error message contains. Enough for the cause, but less than npm's usage text. */
const errorLines = 30;

/** An error that the user can correct. Only its message is printed. */
class SetupProblem extends Error {}

/** npm logs each fetch, for the progress, and retries after seconds instead of npm's default of minutes. */
const npmOptions = [
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--loglevel=http',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=5000',
];

/** After this many failures in a row the registry is unreachable. npm itself would go on to the next of some hundred packages. */
const maxFailedFetches = 8;

/** The running npm, which is stopped when this process is. */
let runningNpm;

try {
  if (!isReady()) await withLock(makeReady);
  // The image contains compiled sources and is read-only.
  if (longRunning.includes(program) && !isProduction && !isCompiled()) await compile();
} catch (error) {
  if (!(error instanceof SetupProblem)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

function isReady() {
  return readStamp() === wantedStamp() && hasNode();
}

async function makeReady() {
  // Another process may have done the work while this one waited for the lock.
  if (isReady()) return;
  rmSync(stampFile, { force: true });
  if (!modulesFitLock() || !hasNode()) await install();
  writeFileSync(stampFile, wantedStamp());
}

/**
 * Installs the packages of the lock file, and the supplied Node.js. `npm ci` cannot install an additional package, and refuses a
 * lock file that lacks another platform's optional package, which happens when a registry mirror is out of date.
 */
async function install() {
  const needsNode = !hasHostNode();
  const nodePackage = suppliedNodePackage();
  if (needsNode && nodePackage === undefined) {
    throw new SetupProblem(
      `Berth needs Node ${neededNode.join('.')} or newer, and this is ${process.version}: ` +
        'install a current Node 24 (https://nodejs.org) and start again.',
    );
  }
  const what = needsNode ? `the dependencies, and Node ${suppliedNode} for this folder alone` : 'the dependencies';
  const packages = needsNode ? [`${nodePackage}@${suppliedNode}`] : [];
  const scope = isProduction ? '--omit=dev' : '--include=dev';
  await npm(`Installing ${what}`, ['install', '--no-save', '--ignore-scripts', scope, ...packages]);
  if (!hasNode()) {
    throw new SetupProblem(
      `Node ${suppliedNode} was installed but cannot be found: install a current Node 24 manually.`,
    );
  }
}

/** Compiles the sources in a separate process. Ignores failures, because each program compiles missing sources itself. */
async function compile() {
  if (!canWriteCache()) return;
  const node = hasHostNode() ? process.execPath : join(modules, '.bin', 'node');
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache };
  const slow = setTimeout(() => process.stderr.write('Compiling the sources …\n'), 1_000);
  const child = spawn(node, [join(root, 'setup/compile.mjs')], { env, stdio: 'ignore' });
  await new Promise((resolve) => child.once('error', resolve).once('close', resolve));
  clearTimeout(slow);
}

/** Whether the compile cache is writable. It is not if another user owns the folder. */
function canWriteCache() {
  try {
    mkdirSync(compileCache, { recursive: true });
    accessSync(compileCache, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether the compile cache is up to date: for this folder, for the Node.js that runs, and newer than all sources. */
function isCompiled() {
  const stamp = join(compileCache, 'berth-compiled');
  const version = hasHostNode() ? process.version : `v${suppliedVersion()}`;
  if (readText(stamp) !== `${version} ${join(root, 'setup')}`) return false;
  const { mtimeMs } = statSync(stamp);
  return sourceFolders.every((folder) => isOlder(join(root, folder), mtimeMs));
}

/** Whether all sources in a folder are older than a time. The folder of a source that was added or renamed is newer, too. */
function isOlder(folder, timeMs) {
  if (statSync(folder).mtimeMs > timeMs) return false;
  return readdirSync(folder, { withFileTypes: true }).every((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return isOlder(path, timeMs);
    return !/\.(?:ts|mjs)$/.test(path) || path.endsWith('.test.ts') || statSync(path).mtimeMs <= timeMs;
  });
}

/** The npm package with Node.js for this machine. The builds need glibc, so there is none for Alpine. */
function suppliedNodePackage() {
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) return undefined;
  const { glibcVersionRuntime } = /** @type {any} */ (process.report.getReport()).header;
  return glibcVersionRuntime === undefined ? undefined : `node-linux-${process.arch}`;
}

/** Whether setup/run will find a Node.js that is new enough: the supplied one or the host's. */
function hasNode() {
  return hasHostNode() || suppliedVersion() === suppliedNode;
}

/** Whether the host's own Node.js is new enough. Inside of `npm start`, the supplied one may run this file. */
function hasHostNode() {
  return isSufficient(process.versions.node) && !process.execPath.startsWith(modules);
}

function suppliedVersion() {
  return readJson(join(modules, `node-linux-${process.arch}`, 'package.json'))?.version;
}

function isSufficient(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > neededNode[0] || (major === neededNode[0] && minor >= neededNode[1]);
}

/** The content of the stamp file when node_modules is up to date: a hash of the lock file, and the platform. */
function wantedStamp() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return `${lock} ${process.platform} ${process.arch}\n`;
}

function readStamp() {
  return readText(stampFile);
}

/** Whether node_modules matches the lock file already, because npm was run manually. npm stores its own list there. */
function modulesFitLock() {
  const wanted = readJson(join(root, 'package-lock.json'))?.packages ?? {};
  const present = readJson(join(modules, '.package-lock.json'))?.packages ?? {};
  return Object.entries(wanted).every(([path, { version, optional, dev }]) => {
    const isNeeded = path !== '' && !optional && !(dev && isProduction);
    return !isNeeded || present[path]?.version === version;
  });
}

/** Runs npm with progress, and prints its output only if it fails. */
async function npm(what, args) {
  const progress = startProgress(what);
  const output = [];
  const child = spawn('npm', [...args, ...npmOptions], {
    cwd: root,
    env: npmEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  runningNpm = child;
  let failedFetches = 0;
  const listen = (line) => {
    progress.detail = line.replace(/^npm /, '').slice(0, 120);
    if (/^npm http (?:cache|fetch \w+ [2-5]\d\d) /.test(line)) {
      failedFetches = 0;
      return;
    }
    output.push(line);
    if (/^npm http fetch .* failed with /.test(line) && ++failedFetches === maxFailedFetches) child.kill();
  };
  createInterface(child.stdout).on('line', listen);
  createInterface(child.stderr).on('line', listen);
  const failure = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.code === 'ENOENT' ? 'there is no "npm" here' : error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `npm ended with ${signal ?? code}`));
  });
  progress.stop();
  if (failure === undefined) return;
  const advice =
    child.pid === undefined
      ? 'install npm'
      : failedFetches > 0
        ? 'the registry does not answer, check the network'
        : 'see below';
  throw new SetupProblem(
    `${what} failed (${failure}): ${advice}, then start again.\n${output.slice(-errorLines).join('\n')}`,
  );
}

/** The environment without the options of an outer npm, such as `npm start --json`, which would apply to the inner npm. */
function npmEnvironment() {
  const outerOptions = /^npm_config_(json|silent|loglevel|dry_run|omit|only|production|ignore_scripts)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !outerOptions.test(name)));
}

/** Prints the current step, and how long it has taken so far. */
function startProgress(what) {
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1000);
  process.stderr.write(`${what} …\n`);
  const timer = setInterval(() => process.stderr.write(`  ${seconds()} s: ${progress.detail}\n`), progressMs);
  const progress = {
    detail: 'waiting for npm',
    stop() {
      clearInterval(timer);
      process.stderr.write(`  took ${seconds()} s\n`);
    },
  };
  return progress;
}

/** Runs `work` while no other process does the same in this folder. */
async function withLock(work) {
  mkdirSync(join(root, '.berth'), { recursive: true, mode: 0o700 });
  await acquireLock();
  const touch = setInterval(touchLock, lockTouchMs);
  const release = () => rmSync(lockFolder, { recursive: true, force: true });
  const interrupted = (signal) => {
    runningNpm?.kill(signal);
    release();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);
  try {
    await work();
  } finally {
    clearInterval(touch);
    release();
  }
}

async function acquireLock() {
  for (let reported = false; ; reported = true) {
    try {
      mkdirSync(lockFolder);
      writeFileSync(join(lockFolder, 'owner'), `${process.pid} ${hostname()}`);
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (lockIsStale()) {
      removeStaleLock();
      continue;
    }
    if (!reported) process.stderr.write('Another process is preparing this folder, waiting for it …\n');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function touchLock() {
  try {
    const now = new Date();
    utimesSync(lockFolder, now, now);
  } catch {
    // Another process has removed the lock. The work continues, because npm copes with a second npm in the same folder.
  }
}

/** A lock is stale if its owner has ended (known only on the same machine), or has not touched it for a while. */
function lockIsStale() {
  const [pid, host] = (readText(join(lockFolder, 'owner')) ?? '').split(' ');
  if (host === hostname() && pid && !isAlive(Number(pid))) return true;
  try {
    return Date.now() - statSync(lockFolder).mtimeMs > lockStaleMs;
  } catch {
    return false;
  }
}

/** Renames the lock before deleting it, so that only one of several processes that found it stale removes it. */
function removeStaleLock() {
  const aside = `${lockFolder}.${process.pid}`;
  try {
    renameSync(lockFolder, aside);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  rmSync(aside, { recursive: true, force: true });
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function readJson(path) {
  const text = readText(path);
  return text === undefined ? undefined : JSON.parse(text);
}
