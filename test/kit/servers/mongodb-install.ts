/** Getting the MongoDB-protocol server for tests, where JDK and Maven are: its libraries, and our own few lines compiled. */
import { createHash } from 'node:crypto';
import { access, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, runCommand } from '../../../setup/command.ts';

const sources = fileURLToPath(new URL('mongodb', import.meta.url));

/** The server, or why there is none. */
export type ProtocolServer =
  | {
      /** Where its classes and, in `lib`, its libraries are. */
      readonly classes: string;
      /** Starts it, with its data in a folder. */
      readonly command: (folder: string, port: number) => readonly [string, ...string[]];
    }
  | { readonly missing: string };

const jdk = 'default-jdk-headless';

/** Tests are over before Java has compiled for speed: it had better not begin. Measurements warm it up. */
const testFlags = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

/** For some gigabytes of chunks, each of which is large for the collector that Java chooses by itself. */
const measuredFlags = ['-XX:+UseParallelGC', '-XX:MaxRAMPercentage=60'];

/** What a server is for. */
export interface ServerUse {
  /**
   * Something that shares its cores with it is measured: it keeps its data in memory then, and forgets it at its end. To write
   * 100 MiB to its file costs it nearly a second of work, which tells nothing of a mongod.
   */
  readonly isMeasured?: boolean;
}

/** What makes and runs the server, and the packages that bring it. */
export const javaPrograms = { java: jdk, javac: jdk, jlink: jdk, mvn: 'maven' };

/** Finds the server, after making it if that was not done yet: about 20 s, most of it Maven's. */
export async function protocolServer({ isMeasured = false }: ServerUse = {}): Promise<ProtocolServer> {
  const missing = [];
  for (const program of ['java', 'javac', 'mvn']) if (!(await findProgram(program))) missing.push(program);
  if (missing.length > 0) return { missing: `these programs are missing: ${missing.join(', ')}` };
  try {
    const classes = await installed();
    const flags = isMeasured ? measuredFlags : testFlags;
    const program = ['java', ...flags, '-cp', classPath(classes), 'Server'] as const;
    const command = (folder: string, port: number) =>
      [...program, `${port}`, ...(isMeasured ? [] : [join(folder, 'data')])] as const;
    return { classes, command };
  } catch (error) {
    return { missing: error instanceof Error ? error.message : String(error) };
  }
}

function classPath(folder: string): string {
  return `${folder}:${join(folder, 'lib', '*')}`;
}

/** A folder with the server. It is named by what it is made of, and appears whole, whoever else makes it at the same time. */
async function installed(): Promise<string> {
  const base = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const cache = join(base, 'berth-tests');
  const hash = createHash('sha256');
  for (const name of ['pom.xml', 'Server.java']) hash.update(await readFile(join(sources, name)));
  const folder = join(cache, `mongodb-${hash.digest('hex').slice(0, 12)}`);
  if (await isThere(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const making = await mkdtemp(join(cache, 'mongodb-making-'));
  try {
    const to = `-DoutputDirectory=${join(making, 'lib')}`;
    await runCommand('mvn', ['-q', '-B', '-f', join(sources, 'pom.xml'), 'dependency:copy-dependencies', to]);
    await runCommand('javac', ['-d', making, '-cp', classPath(making), join(sources, 'Server.java')]);
    await rename(making, folder);
  } catch (error) {
    if (!(await isThere(folder))) throw error;
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return folder;
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
