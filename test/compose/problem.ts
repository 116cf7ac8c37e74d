/** Checks whether docker-compose.yml can be started on this machine, before images are built. */
import { findProgram } from '../../setup/command.ts';
import { modernFolder, staticBusybox } from '../kit/packages/docker-packages.ts';
import { join } from 'node:path';
import { pathExists } from '../kit/packages/cached.ts';
import { caddyProblem } from './caddy-program.ts';
import { composeProgram, noCompose } from './compose.ts';

/** The programs that the stand-in images contain, or that build them. */
const programs = ['docker', 'redis-server', 'java', 'javac', 'jlink', 'mvn', 'npm'];

/** Returns the first missing requirement, or undefined. */
export async function problem(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root on Linux can start a Docker Engine';
  if (!(await pathExists(join(modernFolder(), 'usr/sbin/dockerd'))))
    return 'npm test has not unpacked a modern Docker Engine';
  if ((await composeProgram()) === undefined) return noCompose;
  if ((await staticBusybox()) === undefined) return 'the package busybox-static is missing';
  for (const name of programs) if ((await findProgram(name)) === undefined) return `there is no ${name} on the PATH`;
  return await caddyProblem();
}
