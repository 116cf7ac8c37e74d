/**
 * Makes the project's folder ready to run: dependencies as package-lock.json says, and a Node that can run TypeScript
 * where the host's cannot. Plain JavaScript without dependencies, because it runs before either is there, on Node 18 too.
 * Silent and done within milliseconds when nothing is missing.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const modules = join(root, 'node_modules');
const stampFile = join(modules, '.berth-stamp');
const lockFolder = join(root, '.berth', 'setup.lock');

/** As in the image, which has no tools for developers. */
const isProduction = process.env.NODE_ENV === 'production';

/** The first release whose type stripping and SQLite no longer warn. */
const neededNode = [24, 15];

/** The Node that is installed beside the dependencies where the host's is too old. */
const suppliedNode = '24.21.0';

/** Whoever holds the lock touches it this often; three missed touches and more mean that it died. */
const lockTouchMs = 2_000;
const lockStaleMs = 10_000;

/** A line of progress this often where there is no terminal to animate. */
const progressMs = 10_000;

/** So much of what npm said explains a failure; its usage text alone is longer. */
const saidLines = 30;

/** Something a person can mend: its message is all there is to say. */
class SetupProblem extends Error {}

/** It tells each fetch, for the progress; it tries an unsteady network again, but for seconds instead of its own minutes. */
const npmOptions = [
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--loglevel=http',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=5000',
];

/** After so many failures in a row the registry is out of reach; npm would go on with the next of some hundred packages. */
const maxFailedFetches = 8;

/** The npm that runs now, to be ended with us. */
let runningNpm;

try {
  if (!isReady()) await withLock(makeReady);
} catch (error) {
  if (!(error instanceof SetupProblem)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

function isReady() {
  return readStamp() === wantedStamp() && hasNode();
}

async function makeReady() {
  // Somebody else may have done it while we waited for the lock.
  if (isReady()) return;
  rmSync(stampFile, { force: true });
  if (!modulesFitLock() || !hasNode()) await install();
  warmCompileCache();
  writeFileSync(stampFile, wantedStamp());
}

/**
 * Installs what the lock file says, and the supplied Node beside it. `npm ci` would do without the second, and it refuses
 * a lock file that lacks some other platform's optional package, which happens when a registry mirror lags behind.
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
    throw new SetupProblem(`Node ${suppliedNode} was installed but is not there: install a current Node 24 by hand.`);
  }
}

/** Reads the sources once, so that the first start is as quick, and takes as little memory, as later ones. Only a help. */
function warmCompileCache() {
  const node = hasHostNode() ? process.execPath : join(modules, '.bin', 'node');
  const env = { NODE_COMPILE_CACHE: join(modules, '.cache', 'compile'), ...process.env };
  spawnSync(node, [join(root, 'setup/start.ts'), '--help'], { env, stdio: 'ignore' });
}

/** The package that holds a Node for this machine. They are built against glibc, so not for Alpine. */
function suppliedNodePackage() {
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) return undefined;
  const { glibcVersionRuntime } = /** @type {any} */ (process.report.getReport()).header;
  return glibcVersionRuntime === undefined ? undefined : `node-linux-${process.arch}`;
}

/** Whether setup/run will find a Node that is new enough: the supplied one, or the host's. */
function hasNode() {
  return hasHostNode() || suppliedVersion() === suppliedNode;
}

/** Whether the host's own Node is new enough. Below `npm start` it may be the supplied one that runs this file. */
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

/** What the stamp file says when node_modules fits: it names the lock file's content and the kind of machine. */
function wantedStamp() {
  const lock = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return `${lock} ${process.platform} ${process.arch}\n`;
}

function readStamp() {
  return readText(stampFile);
}

/** Whether somebody ran npm by hand and node_modules already is what the lock file says; npm keeps its own list there. */
function modulesFitLock() {
  const wanted = readJson(join(root, 'package-lock.json'))?.packages ?? {};
  const present = readJson(join(modules, '.package-lock.json'))?.packages ?? {};
  return Object.entries(wanted).every(([path, { version, optional, dev }]) => {
    const isNeeded = path !== '' && !optional && !(dev && isProduction);
    return !isNeeded || present[path]?.version === version;
  });
}

/** Runs npm, shows that it does, and shows what it said only when it failed. */
async function npm(what, args) {
  const progress = startProgress(what);
  const said = [];
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
    said.push(line);
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
    `${what} failed (${failure}): ${advice}, then start again.\n${said.slice(-saidLines).join('\n')}`,
  );
}

/** The environment without what `npm start --json` and the like would make an inner npm do. */
function npmEnvironment() {
  const meantForUs = /^npm_config_(json|silent|loglevel|dry_run|omit|only|production|ignore_scripts)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !meantForUs.test(name)));
}

/** Says what takes longer than a second, and that it still does. */
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
    // Taken away from us: the work goes on, npm itself copes with a second one beside it.
  }
}

/** A lock is stale when its owner is gone (seen only on the same machine), or has not touched it for a while. */
function lockIsStale() {
  const [pid, host] = (readText(join(lockFolder, 'owner')) ?? '').split(' ');
  if (host === hostname() && pid && !isAlive(Number(pid))) return true;
  try {
    return Date.now() - statSync(lockFolder).mtimeMs > lockStaleMs;
  } catch {
    return false;
  }
}

/** Moves the lock aside before deleting it, so that of several who found it stale one takes it away. */
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
