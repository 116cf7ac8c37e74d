/** Garbage of a start. In JavaScript: for TypeScript, Node would load what strips its types into each thread, which takes 10 MB. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * How long after its start a thread collects. The first requests should not wait for it, and a process that soon ends again, as a
 * command or in a test, does not do it: it takes a quarter of the CPU time of a start.
 */
export const collectAfterMs = 20_000;

/**
 * Frees what a start has left in the heap of this thread: loading the sources takes 3 MB in a small thread and 10 MB in a large one.
 * V8 keeps it, because the heap of an idle thread does not grow. Blocks the thread for 10 to 150 ms.
 */
export function collectStart() {
  gcOfV8()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** The flag belongs to the process: where another thread clears it before this one has made its context, this one sets it again. */
function gcOfV8() {
  let gc;
  while (gc === undefined) {
    setFlagsFromString('--expose-gc');
    // The flag shows its function only in contexts that are created after it.
    gc = runInNewContext('globalThis.gc');
    // V8 rejects cached code that was compiled with other flags: each later import of any thread would be compiled again.
    setFlagsFromString('--no-expose-gc');
  }
  return gc;
}
