import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import type { ResourceLimits } from 'node:worker_threads';

/**
 * How far the heap may grow, in percent of the live objects, before V8 runs a full collection. V8 also counts the memory of buffers
 * outside of the heap, and its default is about ten percent: at 50 MB, these are five chunks. With the default, a push or a pull spent
 * half of its time on garbage collection (measured with `bench/engines`). Peak memory does not grow, because buffers are freed much
 * earlier, in collections of the young generation.
 */
const growingPercent = 300;

/**
 * The young generation never grows. Most of its memory is buffers of the driver, each as large as a chunk and soon garbage, and V8
 * collects a small young generation more often. This saves 20 MB at the peak of twenty pushes, and costs 2 % of the time.
 */
const youngGrowthFactor = 1;

/**
 * Tunes garbage collection for a process whose blob driver allocates many buffers. Call it after everything is loaded: V8 stores
 * compiled code with a hash of these flags, and rejects the code in a process whose flags differ.
 */
export function fitHeapToBuffers(): void {
  flushCompileCache();
  setFlagsFromString(`--heap-growing-percent=${growingPercent}`);
  setFlagsFromString(`--semi-space-growth-factor=${youngGrowthFactor}`);
}

/** The size of the young generation of a thread with a proxy: objects of a request live until its backend has answered. */
const proxyYoungMb = 24;

/**
 * The heap limits of a thread with a proxy. The process is started with a limit of the young generation that suits the registry. This
 * flag overrides the limits of new threads, so it is reset first. The heap of the calling thread keeps its limit.
 */
export function threadHeap(): ResourceLimits {
  setFlagsFromString('--max-semi-space-size=0');
  return { maxYoungGenerationSizeMb: proxyYoungMb };
}

/**
 * Makes V8 collect the young generations of all threads without helper threads. By default, helpers share each collection of a
 * millisecond or two. When all cores are busy, all requests wait until the last helper has had a core: 10 to 16 ms for a proxy on one
 * core. The compile cache stays valid.
 */
export function collectWithoutHelpers(): void {
  setFlagsFromString('--no-parallel-scavenge');
}
