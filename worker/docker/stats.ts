import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { linesOf } from '../../core/text/lines.ts';
import { callEngine, engineError } from './engine-error.ts';

/** The CPU time that a container has used so far, and its current memory. */
export interface ContainerUsage {
  readonly cpuNanoseconds: number;
  /** Of all cores of the machine, busy or idle. */
  readonly hostCpuNanoseconds: number;
  /** Without the page cache that the kernel can reclaim at once. */
  readonly memoryBytes: number;
  /** The machine's memory, if the container has no limit. */
  readonly memoryLimitBytes: number;
}

/**
 * Measures the usage of a container once a second until the signal aborts, then throws the signal's reason. Resolves when the engine
 * answers. Throws `no-container`.
 *
 * @param docker - must have no time limit between two answers
 */
export async function followStats(
  docker: Docker,
  container: string,
  signal: AbortSignal,
): Promise<AsyncGenerator<ContainerUsage, void, void>> {
  // The types lack the signal.
  const options: { stream: true } & { abortSignal: AbortSignal } = { stream: true, abortSignal: signal };
  const stream = await callEngine(() => docker.getContainer(container).stats(options));
  return read(addAbortSignal(signal, stream as Readable), signal);
}

async function* read(stream: Readable, signal: AbortSignal): AsyncGenerator<ContainerUsage, void, void> {
  try {
    for await (const line of linesOf(stream)) {
      const usage = usageOf(JSON.parse(line) as Docker.ContainerStats);
      if (usage) yield usage;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw engineError(error);
  }
}

/** The usage in one record of the engine; `undefined` if the container does not run, because the record is then empty. */
function usageOf({ cpu_stats: cpu, memory_stats: memory }: Docker.ContainerStats): ContainerUsage | undefined {
  if (!cpu.system_cpu_usage || memory.usage === undefined) return undefined;
  // Control groups of version 1 report the first value for the container and all groups below it.
  const reclaimable = memory.stats?.total_inactive_file ?? memory.stats?.inactive_file ?? 0;
  return {
    cpuNanoseconds: cpu.cpu_usage.total_usage,
    hostCpuNanoseconds: cpu.system_cpu_usage,
    memoryBytes: Math.max(memory.usage - reclaimable, 0),
    memoryLimitBytes: memory.limit,
  };
}
