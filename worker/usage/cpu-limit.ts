/** Measures running backends with each sweep, and enforces their limit of CPU time. */
import { withPeak } from '../lifecycle/finalize.ts';
import type { WorkerContext } from '../context.ts';
import type { Run } from '../lifecycle/run.ts';
import { stopBackend } from '../lifecycle/stop.ts';
import { findCgroup, readUsage } from './cgroup.ts';
import type { CgroupFolders } from './cgroup.ts';

/** A peak is written when it is this much higher than the previous one: a few writes per backend, not one a second. */
const peakStep = 1.25;

/** Checks the usage of backends, and caches their control groups. */
export class CpuLimits {
  readonly #worker: WorkerContext;
  readonly #writing = new WeakSet<Run>();
  readonly #cgroups = new WeakMap<Run, CgroupFolders | 'invisible'>();

  constructor(worker: WorkerContext) {
    this.#worker = worker;
  }

  /** Records a backend's peak memory usage, and stops the backend when its CPU time is used up. Throws an `EngineError`. */
  async check(run: Run): Promise<void> {
    const cgroup = await this.#cgroupOf(run);
    const usage = cgroup && (await readUsage(cgroup));
    if (usage) this.#recordPeak(run, usage.memoryBytes);
    const limitSeconds = run.backend.limits.cpuTimeSeconds;
    if (limitSeconds === undefined || run.stopKind !== undefined || !run.container?.started) return;
    const usedNanoseconds =
      usage?.cpuNanoseconds ?? (await this.#worker.engine.containers.cpuNanoseconds(run.container.id));
    if (usedNanoseconds < limitSeconds * 1e9) return;
    run.fail(`Used up its ${limitSeconds} seconds of CPU time`);
    stopBackend(this.#worker, run, 'hard', 'external');
  }

  #recordPeak(run: Run, memoryBytes: number): void {
    run.memoryUsed(memoryBytes);
    const isWorthWriting = run.peakMemoryBytes > peakStep * (run.backend.peakMemoryBytes ?? 0);
    // While the store does not answer, only one write waits for it.
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
      known = (await findCgroup(state.pid, run.container.id)) ?? 'invisible';
      this.#cgroups.set(run, known);
    }
    return known === 'invisible' ? undefined : known;
  }
}
