import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { linesOf } from '../../core/text/lines.ts';
import { calling, engineError } from './engine-error.ts';

/** What a container has used up to a moment, and uses in it. */
export interface ContainerUsage {
  readonly cpuNanoseconds: number;
  /** Of all cores of the machine, busy or idle. */
  readonly hostCpuNanoseconds: number;
  /** Without the page cache that the kernel can take back at once. */
  readonly memoryBytes: number;
  /** The machine's memory, if the container has no limit. */
  readonly memoryLimitBytes: number;
}

export interface Stats {
  /**
   * What the container of a backend uses, once a second until the signal aborts, whose reason is thrown then. Resolves when the
   * engine answers. Throws `no-container`.
   */
  follow(backend: string, signal: AbortSignal): Promise<AsyncGenerator<ContainerUsage, void, void>>;
}

export class DockerStats implements Stats {
  readonly #docker: Docker;
  readonly #containerName: (backend: string) => string;

  /** `docker` must let the engine be silent for as long as it likes. */
  constructor(docker: Docker, containerName: (backend: string) => string) {
    this.#docker = docker;
    this.#containerName = containerName;
  }

  async follow(backend: string, signal: AbortSignal): Promise<AsyncGenerator<ContainerUsage, void, void>> {
    const container = this.#docker.getContainer(this.#containerName(backend));
    // The types leave the signal out.
    const options: { stream: true } & { abortSignal: AbortSignal } = { stream: true, abortSignal: signal };
    const stream = await calling(() => container.stats(options));
    return read(addAbortSignal(signal, stream as Readable), signal);
  }
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

/** Of a container that does not run the engine says nothing but its name. */
function usageOf({ cpu_stats: cpu, memory_stats: memory }: Docker.ContainerStats): ContainerUsage | undefined {
  if (!cpu.system_cpu_usage || memory.usage === undefined) return undefined;
  // The first is what control groups of version 1 say for the container and all below it.
  const reclaimable = memory.stats?.total_inactive_file ?? memory.stats?.inactive_file ?? 0;
  return {
    cpuNanoseconds: cpu.cpu_usage.total_usage,
    hostCpuNanoseconds: cpu.system_cpu_usage,
    memoryBytes: Math.max(memory.usage - reclaimable, 0),
    memoryLimitBytes: memory.limit,
  };
}
