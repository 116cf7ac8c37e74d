/** Builds the MongoDB-protocol server for tests with JDK and Maven: its libraries, and the classes in `mongodb/`. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, runCommand } from '../../../setup/command.ts';
import { messageOf } from '../message-of.ts';
import { cached } from '../packages/cached.ts';

const sources = fileURLToPath(new URL('mongodb', import.meta.url));

/** The server, or why it is missing. */
export type ProtocolServer =
  | {
      /** The folder of its classes, with its libraries in `lib`. */
      readonly classes: string;
      /** The command that starts it with its data in a folder. */
      readonly command: (folder: string, port: number) => readonly [string, ...string[]];
    }
  | { readonly missing: string };

const jdk = 'default-jdk-headless';

/**
 * Without Java's optimizing compiler: it does not pay off during tests. In one thread, because the server changes
 * documents in place: another thread's search would return them as they are after a later write, which a MongoDB never does.
 */
const testFlags = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Dio.netty.eventLoopThreads=1'];

/** For gigabytes of chunks, which are too large for Java's default garbage collector. */
const measuredFlags = ['-XX:+UseParallelGC'];

/** The heap's share of the machine's memory: a server without a file keeps all its data there. Java's default is 25 %. */
const memoryFlag = '-XX:MaxRAMPercentage=60';

/** What a server is used for. */
export interface ServerUse {
  /** Set for measurements of a process on the same cores. */
  readonly isMeasured?: boolean;
  /**
   * Set for a server that is stopped and started again: it keeps its data in a file. Other servers keep their data in memory, because
   * writing 100 MiB to the file takes nearly a second of CPU time, which a mongod would not need.
   */
  readonly isStopped?: boolean;
}

/** The programs that build and run the server, and their packages. */
export const javaPrograms = { java: jdk, javac: jdk, jlink: jdk, mvn: 'maven' };

/** Returns the server, and builds it first if needed, which takes about 20 s, mostly for Maven. */
export async function protocolServer({ isMeasured, isStopped }: ServerUse = {}): Promise<ProtocolServer> {
  const missing = [];
  for (const program of ['java', 'javac', 'mvn']) if (!(await findProgram(program))) missing.push(program);
  if (missing.length > 0) return { missing: `these programs are missing: ${missing.join(', ')}` };
  try {
    const classes = await installed();
    const flags = isMeasured ? measuredFlags : testFlags;
    const program = ['java', ...flags, memoryFlag, '-cp', classPath(classes), 'Server'] as const;
    const command = (folder: string, port: number) =>
      [...program, `${port}`, ...(isStopped ? [join(folder, 'data')] : [])] as const;
    return { classes, command };
  } catch (error) {
    return { missing: messageOf(error) };
  }
}

function classPath(folder: string): string {
  return `${folder}:${join(folder, 'lib', '*')}`;
}

/** The cached folder of the server, named by a hash of its sources. */
async function installed(): Promise<string> {
  const hash = createHash('sha256');
  for (const name of ['pom.xml', 'Server.java']) hash.update(await readFile(join(sources, name)));
  return await cached(`mongodb-${hash.digest('hex').slice(0, 12)}`, async (making) => {
    const to = `-DoutputDirectory=${join(making, 'lib')}`;
    await runCommand('mvn', ['-q', '-B', '-f', join(sources, 'pom.xml'), 'dependency:copy-dependencies', to]);
    await runCommand('javac', ['-d', making, '-cp', classPath(making), join(sources, 'Server.java')]);
  });
}
