/** Debian's `docker-registry`, the reference implementation, with files in its own folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { installWithApt } from '../setup/apt.ts';
import { findProgram } from '../setup/command.ts';
import { openTerminal } from '../setup/terminal.ts';
import { freePort } from '../test/kit/machine/free-port.ts';

const program = 'docker-registry';

export interface DebianRegistry extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
}

/** Starts the registry with a folder on the same disk as Berth's. Installs it if it is missing and this process is root. */
export async function startDebianRegistry(parentFolder: string): Promise<DebianRegistry> {
  if (!(await findProgram(program))) {
    const problem = await installWithApt(openTerminal(process.stderr), `Installing ${program}`, [program]);
    if (problem !== undefined) throw new Error(problem);
  }
  const folder = await mkdtemp(join(parentFolder, 'debian-registry-'));
  const port = await freePort();
  const config = join(folder, 'config.yml');
  await writeFile(
    config,
    `version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage:
  cache: { blobdescriptor: inmemory }
  filesystem: { rootdirectory: ${join(folder, 'data')}, maxthreads: 100 }
  delete: { enabled: true }
http: { addr: '127.0.0.1:${port}' }
`,
  );
  const child = spawn(program, ['serve', config], { stdio: ['ignore', 'ignore', 'inherit'] });
  await untilAnswers(port);
  return {
    port,
    pid: child.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}

async function untilAnswers(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    const up = await fetch(`http://127.0.0.1:${port}/v2/`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (up) return;
    await delay(100);
  }
  throw new Error('docker-registry did not start');
}
