import { setFlagsFromString } from 'node:v8';

/**
 * In percent of what is alive: how much may be added to the heap before all of it is looked through for garbage. V8 counts
 * what buffers hold outside of the heap, too, and starts with about ten percent, which at 50 MB are the reads of five
 * chunks. A push or a pull spent half of its time on collections then; measured with `bench/engines`, and without more memory
 * at the peak, since buffers are freed with the young garbage, long before.
 */
const growingPercent = 300;

/**
 * By how much the room for young objects grows when many of them are alive: not at all. It is the driver's buffers that count,
 * each the size of a chunk and garbage a moment later, and the smaller that room, the sooner V8 looks for them: 20 MB less at the
 * peak of twenty pushes, for a millisecond every fifty.
 */
const youngGrowthFactor = 1;

/** For processes through which bytes go that a library reads and writes, in buffers of its own. */
export function fitHeapToBuffers(): void {
  setFlagsFromString(`--heap-growing-percent=${growingPercent}`);
  setFlagsFromString(`--semi-space-growth-factor=${youngGrowthFactor}`);
}
