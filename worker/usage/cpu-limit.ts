/** What each pass of the sweep measures of a running backend, and the limit that follows from it. */
import { withPeak } from '../lifecycle/finalize.ts';
import type { WorkerContext } from '../context.ts';
import type { Run } from '../lifecycle/run.ts';
import { stopBackend } from '../lifecycle/stop.ts';
import { findCgroup, readUsage } from './cgroup.ts';
import type { CgroupFolders } from './cgroup.ts';

/** A new peak is written when it is this much higher than the one before: a few writes in a life, not one a second. */
const peakStep = 1.25;

/** Measures backends, remembering where the kernel shows each one. */
export class CpuLimits {
  readonly #worker: WorkerContext;
  readonly #writing = new WeakSet<Run>();
  readonly #cgroups = new WeakMap<Run, CgroupFolders | 'unseen'>();

  constructor(worker: WorkerContext) {
    this.#worker = worker;
  }

  /** Notes the peak of a backend's memory, and stops it when its CPU time is used up. Throws what the engine throws. */
  async check(run: Run): Promise<void> {
    const cgroup = await this.#cgroupOf(run);
    const usage = cgroup && (await readUsage(cgroup));
    if (usage) this.#notePeak(run, usage.memoryBytes);
    const limitSeconds = run.backend.limits.cpuTimeSeconds;
    if (limitSeconds === undefined || run.stopKind !== undefined || !run.container?.started) return;
    const usedNanoseconds =
      usage?.cpuNanoseconds ?? (await this.#worker.engine.containers.cpuNanoseconds(run.container.id));
    if (usedNanoseconds < limitSeconds * 1e9) return;
    run.fail(`Used up its ${limitSeconds} seconds of CPU time`);
    stopBackend(this.#worker, run, 'hard', 'external');
  }

  #notePeak(run: Run, memoryBytes: number): void {
    run.memoryUsed(memoryBytes);
    const isWorthWriting = run.peakMemoryBytes > peakStep * (run.backend.peakMemoryBytes ?? 0);
    // While the store is away one write waits for it, not one a second.
    if (!isWorthWriting || this.#writing.has(run)) return;
    const peak = run.peakMemoryBytes;
    this.#writing.add(run);
    run
      .write((backend) => withPeak(backend, peak))
      .catch(() => {})
      .finally(() => this.#writing.delete(run));
  }

  async #cgroupOf(run: Run): Promise<CgroupFolders | undefined> {
    if (!run.container?.started) return undefined;
    let known = this.#cgroups.get(run);
    if (known === undefined) {
      const state = await this.#worker.engine.containers.inspect(run.container.id);
      if (!state || state.pid === 0) return undefined;
      known = (await findCgroup(state.pid, run.container.id)) ?? 'unseen';
      this.#cgroups.set(run, known);
    }
    return known === 'unseen' ? undefined : known;
  }
}
