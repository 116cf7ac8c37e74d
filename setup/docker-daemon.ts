/** Starting the Docker Engine that is installed on this machine, as root. */
import { spawn } from 'node:child_process';
import { access, open, readFile, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findProgram, tryCommand } from './command.ts';
import type { Terminal } from './terminal.ts';

const logFile = '/var/log/dockerd.log';
const pidFile = '/var/run/docker.pid';

/** A cold engine takes a few seconds; on a slow disk with many images, more. */
const startTimeoutMs = 60_000;
const pollMs = 100;

/** How much of the engine's log belongs into an error. */
const logTailLines = 8;

/**
 * Starts the engine and waits until `answers` says so: systemd's service where systemd runs, otherwise dockerd itself, which
 * then outlives this process, because its containers do. Returns what went wrong in one sentence, or nothing.
 */
export async function startDockerEngine(
  terminal: Terminal,
  answers: () => Promise<boolean>,
): Promise<string | undefined> {
  return await terminal.during('Starting Docker Engine', async () => {
    return (await isThere('/run/systemd/system')) ? await startService(answers) : await startByHand(terminal, answers);
  });
}

async function startService(answers: () => Promise<boolean>): Promise<string | undefined> {
  const { code, stderr } = await tryCommand('systemctl', ['start', 'docker']);
  if (code === 0 && (await eventually(answers))) return undefined;
  return `Docker Engine does not start, see "journalctl -u docker": ${stderr.trim()}`;
}

async function startByHand(terminal: Terminal, answers: () => Promise<boolean>): Promise<string | undefined> {
  // The package may have started it by way of init.d, or another `npm start` just now.
  if (await answers()) return undefined;
  await removeForeignPidFile();
  const dockerd = (await findProgram('dockerd')) ?? 'dockerd';
  await using log = await open(logFile, 'a', 0o640);
  const child = spawn(dockerd, [], { detached: true, stdio: ['ignore', log.fd, log.fd] });
  const ended = new AbortController();
  child.once('error', () => ended.abort());
  child.once('exit', () => ended.abort());
  child.unref();
  if (await eventually(answers, ended.signal)) {
    if (!ended.signal.aborted) {
      terminal.say(
        `Started Docker Engine as process ${child.pid} (log in ${logFile}). ` +
          `It stays when Berth stops; "kill ${child.pid}" ends it.`,
      );
    }
    return undefined;
  }
  if (!ended.signal.aborted) child.kill();
  const lines = (await readFile(logFile, 'utf8')).trim().split('\n').slice(-logTailLines);
  return `Docker Engine does not run on this machine, the last lines of ${logFile} say why:\n${lines.join('\n')}`;
}

/** dockerd refuses to start when its file names any living process, which after a restart may be another's. */
async function removeForeignPidFile(): Promise<void> {
  const pid = (await readFile(pidFile, 'utf8').catch(() => '')).trim();
  if (pid === '') return;
  const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();
  if (basename(name) !== 'dockerd') await rm(pidFile, { force: true });
}

/** Asks again and again until it is true, the time is up, or `ended` says that there is nobody left to ask. */
async function eventually(ask: () => Promise<boolean>, ended?: AbortSignal): Promise<boolean> {
  const deadline = performance.now() + startTimeoutMs;
  while (performance.now() < deadline) {
    if (await ask()) return true;
    // Lost a race against somebody who started it too: then that one answers soon.
    if (ended?.aborted) return await delay(2_000).then(ask);
    await delay(pollMs);
  }
  return false;
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
