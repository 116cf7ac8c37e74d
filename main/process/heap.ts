import { flushCompileCache } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import type { ResourceLimits } from 'node:worker_threads';

/**
 * How far the heap may grow, in percent of the live objects, before V8 collects all of it. V8 also counts the memory of buffers
 * outside of the heap, and starts with about ten percent, which at 50 MB is five chunks that were read. With that setting, a push
 * or a pull spent half of its time on garbage collection (measured with `bench/engines`). Peak memory does not grow, because
 * buffers are freed much earlier, in collections of the young generation.
 */
const growingPercent = 300;

/**
 * How much the young generation grows when many of its objects are alive: not at all. The buffers of the driver dominate: each is
 * as large as a chunk and becomes garbage a moment later, and V8 collects a small young generation more often. That saves 20 MB
 * at the peak of twenty pushes, and costs a millisecond in every fifty.
 */
const youngGrowthFactor = 1;

/**
 * Tunes garbage collection for a process whose blob driver reads and writes in its own buffers. Call it when everything is loaded: V8
 * stores compiled code with a hash of these flags, and rejects it in a process whose flags differ.
 */
export function fitHeapToBuffers(): void {
  flushCompileCache();
  setFlagsFromString(`--heap-growing-percent=${growingPercent}`);
  setFlagsFromString(`--semi-space-growth-factor=${youngGrowthFactor}`);
}

/**
 * The young generation of a thread with a proxy. Every request leaves garbage that lives for as long as its backend takes to answer.
 */
const proxyYoungMb = 24;

/**
 * The heap of a thread with a proxy. The limit of the young generation that the process was started with, which suits the registry,
 * holds for all of its threads, and is stronger than theirs: so it is lifted. The heap of this thread keeps it.
 */
export function threadHeap(): ResourceLimits {
  setFlagsFromString('--max-semi-space-size=0');
  return { maxYoungGenerationSizeMb: proxyYoungMb };
}

/**
 * Collects the young generations of all threads without helpers. V8 shares each of these collections of a millisecond or two among threads,
 * and where cores are busy, all requests wait until the last of those threads has had a core: 10 to 16 ms for a proxy on one core.
 * Compiled code stays valid.
 */
export function collectWithoutHelpers(): void {
  setFlagsFromString('--no-parallel-scavenge');
}
