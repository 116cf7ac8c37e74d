/**
 * The lease of a key, enforced by the container itself. Each backend with a key sees its own folder as `/.berth`, read-only:
 * `init` is the first process of its container (see `init/init.c`), and lets the program run until the time in `lease`. The worker
 * renews that file, so a container outlives its worker and its engine for no longer than its lease.
 *
 *     <lease folder>/
 *       init                 the init for this machine
 *       <backend>/init       a link to it, and beside it one to the port helper (`readiness/port-helper.ts`)
 *       <backend>/lease      "<soft> <hard> <signal>", replaced by rename
 *       <backend>/spare      the next lease; a renewal exchanges the two, so it needs no space on a full disk (ext4, XFS)
 *
 * Used only if other processes share the store: otherwise no other process can assign the key again.
 */
import { constants, uptime } from 'node:os';
import { chmod, link, mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TerminationKind } from '../../contract/statuses.ts';
import { ifPresent, systemCode } from '../../core/files/system-code.ts';
import { initHardStopBeforeMs, initSoftStopBeforeMs, leaseMs } from '../../model/key.ts';
import type { WorkerDeps } from '../context.ts';
import { installProgram } from '../install-program.ts';

/** `/proc/uptime` counts hundredths of a second, and the time of day may have been corrected slightly since. */
const toleranceMs = 100;

/** The number of digits of each time: all lines of a lease have the same length, because one overwrites the other. */
const timeDigits = 16;

/** The lease folders of this node's backends with a key. */
export class ContainerLeases {
  readonly #folder: string;
  readonly #engineFolder: string;
  readonly #portHelper: string | undefined;

  /**
   * Use `openContainerLeases`.
   *
   * @param engineFolder - the engine's path of the same folder
   */
  constructor(folder: string, engineFolder: string, portHelper?: string) {
    this.#folder = folder;
    this.#engineFolder = engineFolder;
    this.#portHelper = portHelper;
  }

  /** The lease of a backend, whose folder may exist already. */
  of(backend: string): ContainerLease {
    return new ContainerLease({
      folder: join(this.#folder, backend),
      engineFolder: join(this.#engineFolder, backend),
      programs: { init: join(this.#folder, 'init'), 'port-helper': this.#portHelper },
    });
  }

  /** Removes the folders of all backends that do not need one. */
  async removeAllBut(isNeeded: (backend: string) => boolean): Promise<void> {
    for (const entry of await readdir(this.#folder, { withFileTypes: true })) {
      if (entry.isDirectory() && !isNeeded(entry.name)) await this.of(entry.name).remove();
    }
  }
}

/** Creates the lease folder of this node, with the init for its processor. Throws `EngineError` if the engine cannot use it. */
export async function openContainerLeases(
  { settings, engine }: WorkerDeps,
  portHelper?: { readonly file: string },
): Promise<ContainerLeases> {
  const folder = settings.leaseFolder;
  await installProgram('init', folder);
  return new ContainerLeases(folder, await engine.pathOf(folder), portHelper?.file);
}

/** The boot times in milliseconds at which the init of a container asks its program to stop, and ends the container. */
export interface InitDeadlines {
  readonly softMs: number;
  readonly hardMs: number;
}

/** Which deadline has passed at a boot time, or passes within moments; `undefined` if none has. */
export function passed({ softMs, hardMs }: InitDeadlines, atMs: number = bootTimeMs()): TerminationKind | undefined {
  const latestMs = atMs + toleranceMs;
  if (latestMs < softMs) return undefined;
  return latestMs < hardMs ? 'soft' : 'hard';
}

/** The lease that one container enforces. */
export class ContainerLease {
  /** The engine's path of the folder that the container sees as `/.berth`. */
  readonly engineFolder: string;
  readonly #folder: string;
  readonly #programs: Readonly<Record<string, string | undefined>>;
  #stopSignal: number = constants.signals.SIGTERM;
  #grantedAtMs: number | undefined;
  #replacing: Promise<void> = Promise.resolve();

  constructor({
    folder,
    engineFolder,
    programs,
  }: {
    folder: string;
    engineFolder: string;
    programs: Readonly<Record<string, string | undefined>>;
  }) {
    this.engineFolder = engineFolder;
    this.#folder = folder;
    this.#programs = programs;
  }

  /** Creates the folder if it does not exist. The init of a container starts its program only after the first `renew`. */
  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    // Independent of the umask: images may run as any user.
    await chmod(this.#folder, 0o755);
    for (const [name, program] of Object.entries(this.#programs)) {
      if (program === undefined) continue;
      await link(program, join(this.#folder, name)).catch((error: unknown) => {
        if (systemCode(error) !== 'EEXIST') throw error;
      });
    }
  }

  /**
   * Lets the program run until shortly before a lease of the usual length ends. The folder must exist, see `open`.
   *
   * @param grantedAtMs - the boot time in milliseconds, read before the lease was requested from the store
   */
  async renew(grantedAtMs: number): Promise<void> {
    this.#grantedAtMs = grantedAtMs;
    const endsAtMs = grantedAtMs + leaseMs;
    const times = [endsAtMs - initSoftStopBeforeMs, endsAtMs - initHardStopBeforeMs];
    const digits = times.map((ms) => String(ms).padStart(timeDigits, '0'));
    const line = [...digits, String(this.#stopSignal).padStart(2, '0')].join(' ');
    const replacing = this.#replacing.then(() => this.#replace(`${line}\n`));
    this.#replacing = replacing.catch(() => {});
    await replacing;
  }

  async #replace(line: string): Promise<void> {
    const [lease, spare, former] = [this.#file('lease'), this.#file('spare'), this.#file('former')];
    // A crash in between left it.
    await rm(former, { force: true });
    await overwrite(spare, line);
    const hasFormer = await ifPresent(link(lease, former).then(() => true));
    await rename(spare, lease);
    if (hasFormer) await rename(former, spare);
    // The first lease: the spare is created while there is space.
    else await overwrite(spare, line);
  }

  /** Sets the signal with which the init asks the program to stop: that of the image. Default: SIGTERM. */
  async useStopSignal(signal: number): Promise<void> {
    if (signal === this.#stopSignal) return;
    this.#stopSignal = signal;
    if (this.#grantedAtMs !== undefined) await this.renew(this.#grantedAtMs);
  }

  /** When the init stops the container, by the last renewal of this worker or an earlier one; `undefined` before the first. */
  async deadlines(): Promise<InitDeadlines | undefined> {
    const line = await ifPresent(readFile(this.#file('lease'), 'utf8'));
    const [softMs, hardMs] = (line ?? '').split(' ').map(Number);
    return softMs === undefined || hardMs === undefined ? undefined : { softMs, hardMs };
  }

  /** How the init ended a container that exited this long ago; `undefined` if its lease had not ended by then. */
  async endedBy(endedAgoMs: number): Promise<TerminationKind | undefined> {
    const deadlines = await this.deadlines();
    return deadlines && passed(deadlines, bootTimeMs() - endedAgoMs);
  }

  /** Whether the init has certainly asked the program to stop. Never rejects: a stop must not fail for this. */
  async hasAskedToStop(): Promise<boolean> {
    const endedBy = await this.endedBy(2 * toleranceMs).catch(() => undefined);
    return endedBy !== undefined;
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  #file(name: string): string {
    return join(this.#folder, name);
  }
}

/** Writes a file of the same length in place, or creates it. */
async function overwrite(path: string, text: string): Promise<void> {
  const isPresent = await ifPresent(writeFile(path, text, { flag: 'r+' }).then(() => true));
  if (!isPresent) await writeFile(path, text, { mode: 0o644 });
}

/**
 * Milliseconds since the machine started, including the time while it was suspended (CLOCK_BOOTTIME, in steps of 10 ms). Every
 * container of the machine reads the same clock, and setting the time of day does not change it.
 */
export function bootTimeMs(): number {
  return Math.floor(uptime() * 1000);
}
