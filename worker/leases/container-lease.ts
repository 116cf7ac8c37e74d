/**
 * The lease of a key as the container itself enforces it. Every keyed backend sees a folder of its own as `/.berth`, read-only:
 * `init` is the first process of its container (see `init/init.c`), and `lease` says until when that lets the program run. The
 * worker renews the file, so a container outlives neither its worker nor its engine for longer than its lease.
 *
 *     <lease folder>/
 *       init                 the init for this machine
 *       <backend>/init       a link to it
 *       <backend>/lease      "<soft> <hard> <signal>", replaced by rename
 *
 * Only where other processes share the store: in a store of one process no other one can give the key away.
 */
import { constants } from 'node:os';
import { chmod, copyFile, link, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TerminationKind } from '../../contract/statuses.ts';
import { ifPresent, systemCode } from '../../core/files/system-code.ts';
import { draftOf } from '../../core/files/durable.ts';
import { initHardStopBeforeMs, initSoftStopBeforeMs, leaseMs } from '../../model/key.ts';
import { bootTimeMs } from './boot-time.ts';
import type { WorkerDeps } from '../context.ts';
import { EngineError } from '../docker/engine-error.ts';

/** Which build of the init runs on which processor, by Node's names for these. */
const builds: Readonly<Record<string, string>> = { x64: 'init-amd64', arm64: 'init-arm64' };

/** What a soft stop sends. */
const stopSignal = constants.signals.SIGTERM;

/** `/proc/uptime` counts hundredths of a second, and the time of day may have been corrected a little since. */
const toleranceMs = 100;

/** The folders of this node's keyed backends. */
export class ContainerLeases {
  readonly #folder: string;
  readonly #engineFolder: string;

  /**
   * Use `openContainerLeases`.
   *
   * @param engineFolder - the same folder as the engine sees it
   */
  constructor(folder: string, engineFolder: string) {
    this.#folder = folder;
    this.#engineFolder = engineFolder;
  }

  /** The lease of a backend, whose folder may be there already. */
  of(backend: string): ContainerLease {
    return new ContainerLease({
      folder: join(this.#folder, backend),
      engineFolder: join(this.#engineFolder, backend),
      init: join(this.#folder, 'init'),
    });
  }

  /** Removes the folders of backends that need none any more. */
  async removeAllBut(isNeeded: (backend: string) => boolean): Promise<void> {
    for (const entry of await readdir(this.#folder, { withFileTypes: true })) {
      if (entry.isDirectory() && !isNeeded(entry.name)) await this.of(entry.name).remove();
    }
  }
}

/** Makes the lease folder of this node, with the init for its processor. Throws `EngineError` where the engine cannot use it. */
export async function openContainerLeases({ settings, engine }: WorkerDeps): Promise<ContainerLeases> {
  const folder = settings.leaseFolder;
  const build = builds[process.arch];
  if (build === undefined) {
    throw new EngineError('refused', `There is no init for processors of the kind "${process.arch}", use x64 or arm64`);
  }
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = draftOf(join(folder, 'init'));
  await copyFile(join(import.meta.dirname, '../init', build), draft);
  // Images may run as any user.
  await chmod(draft, 0o755);
  await rename(draft, join(folder, 'init'));
  return new ContainerLeases(folder, await engine.pathOf(folder));
}

/** The lease that one container enforces. */
export class ContainerLease {
  /** What the container sees as `/.berth`, under the engine's path. */
  readonly engineFolder: string;
  readonly #folder: string;
  readonly #init: string;

  constructor({ folder, engineFolder, init }: { folder: string; engineFolder: string; init: string }) {
    this.engineFolder = engineFolder;
    this.#folder = folder;
    this.#init = init;
  }

  /** Makes the folder, if it is not there. The init of a container does not start its program before the first `renew`. */
  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    // Whatever the umask: images may run as any user.
    await chmod(this.#folder, 0o755);
    await link(this.#init, join(this.#folder, 'init')).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw error;
    });
  }

  /**
   * Lets the program run until shortly before a lease of the usual length ends. The folder must be there, see `open`.
   *
   * @param grantedAtMs - the boot time before the store was asked for the lease, in milliseconds
   */
  async renew(grantedAtMs: number): Promise<void> {
    const endsAtMs = grantedAtMs + leaseMs;
    const line = `${endsAtMs - initSoftStopBeforeMs} ${endsAtMs - initHardStopBeforeMs} ${stopSignal}\n`;
    const path = join(this.#folder, 'lease');
    const draft = draftOf(path);
    try {
      await writeFile(draft, line, { mode: 0o644 });
      await rename(draft, path);
    } finally {
      await rm(draft, { force: true });
    }
  }

  /** How the init ended a container that ended this long ago, or `undefined` if its lease had not run out by then. */
  async endedBy(endedAgoMs: number): Promise<TerminationKind | undefined> {
    const line = await ifPresent(readFile(join(this.#folder, 'lease'), 'utf8'));
    const [softMs, hardMs] = (line ?? '').split(' ').map(Number);
    if (softMs === undefined || hardMs === undefined) return undefined;
    const endedAtMs = bootTimeMs() - endedAgoMs + toleranceMs;
    if (endedAtMs < softMs) return undefined;
    return endedAtMs < hardMs ? 'soft' : 'hard';
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
