/** Debian's `docker-registry`, the reference implementation, with files in its own folder. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installWithApt } from '../setup/apt.ts';
import { findProgram } from '../setup/command.ts';
import { openTerminal } from '../setup/terminal.ts';
import { endProcess } from '../test/kit/machine/end-process.ts';
import { freePort } from '../test/kit/machine/free-port.ts';
import { untilPortOpen } from './until-port-open.ts';

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
  await untilPortOpen(port);
  return {
    port,
    pid: child.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      await endProcess(child, 'SIGTERM');
      await rm(folder, { recursive: true });
    },
  };
}
