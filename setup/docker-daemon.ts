/** Starts the Docker Engine that is installed on this machine, as root. */
import { spawn } from 'node:child_process';
import { access, open, readFile, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, tryCommand } from './command.ts';
import type { Terminal } from './terminal.ts';

const logFile = '/var/log/dockerd.log';
const pidFile = '/var/run/docker.pid';

/** An engine takes a few seconds to start, and more on a slow disk with many images. */
const startTimeoutMs = 60_000;
const pollMs = 100;

/** How many lines of the engine's log an error message contains. */
const logTailLines = 8;

/**
 * Starts the engine and waits until `answers` returns true. Starts the service if systemd runs, otherwise dockerd, which keeps
 * running after this process, because its containers do. Returns an error message, or `undefined`.
 */
export async function startDockerEngine(
  terminal: Terminal,
  answers: () => Promise<boolean>,
): Promise<string | undefined> {
  return await terminal.withProgress('Starting Docker Engine', async () => {
    return (await exists('/run/systemd/system')) ? await startService(answers) : await startDockerd(terminal, answers);
  });
}

async function startService(answers: () => Promise<boolean>): Promise<string | undefined> {
  const { code, stderr } = await tryCommand('systemctl', ['start', 'docker']);
  if (code === 0 && (await pollUntil(answers))) return undefined;
  return `Docker Engine does not start, see "journalctl -u docker": ${stderr.trim()}`;
}

async function startDockerd(terminal: Terminal, answers: () => Promise<boolean>): Promise<string | undefined> {
  // The package may have started the engine with its init.d script, or another `npm start` may have.
  if (await answers()) return undefined;
  await removeForeignPidFile();
  const dockerd = (await findProgram('dockerd')) ?? 'dockerd';
  await using log = await open(logFile, 'a', 0o640);
  const child = spawn(dockerd, [], { detached: true, stdio: ['ignore', log.fd, log.fd] });
  const ended = new AbortController();
  child.once('error', () => ended.abort());
  child.once('exit', () => ended.abort());
  child.unref();
  if (await pollUntil(answers, ended.signal)) {
    if (!ended.signal.aborted) {
      terminal.print(
        `Started Docker Engine as process ${child.pid} (log in ${logFile}). ` +
          `It keeps running when Berth stops; "kill ${child.pid}" stops it.`,
      );
    }
    return undefined;
  }
  if (!ended.signal.aborted) child.kill();
  const lines = (await readFile(logFile, 'utf8')).trim().split('\n').slice(-logTailLines);
  return `Docker Engine does not start on this machine, see the last lines of ${logFile}:\n${lines.join('\n')}`;
}

/**
 * Removes the PID file unless it names a dockerd. dockerd does not start while its PID file names a running process, even if that
 * is another program that got the same PID after a restart.
 */
async function removeForeignPidFile(): Promise<void> {
  const pid = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
  if (pid === '') return;
  const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();
  if (basename(name) !== 'dockerd') await rm(pidFile, { force: true });
}

/** Polls until `isDone` returns true, the time limit is reached, or the process has ended. */
async function pollUntil(isDone: () => Promise<boolean>, ended?: AbortSignal): Promise<boolean> {
  const deadline = performance.now() + startTimeoutMs;
  while (performance.now() < deadline) {
    if (await isDone()) return true;
    // If another process has started the engine at the same time, that engine answers soon.
    if (ended?.aborted) return await delay(2_000).then(isDone);
    await delay(pollMs);
  }
  return false;
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
