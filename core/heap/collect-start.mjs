/**
 * Collects the garbage of a start. Written in JavaScript, because for TypeScript Node would load its type stripper into each thread,
 * which takes 10 MB.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * How long after its start a thread collects garbage, which takes a quarter of the CPU time of a start. The first requests do not wait
 * for it, and short-lived processes, such as commands, end before it.
 */
export const collectAfterMs = 20_000;

/**
 * Collects the garbage of a start in the heap of this thread: loading the sources leaves 3 MB in a small thread and 10 MB in a large
 * one. V8 itself does not collect it, because the heap of an idle thread does not grow. Blocks the thread for 10 to 150 ms.
 */
export function collectStartupGarbage() {
  gcOfV8()({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** The flag is process-wide: if another thread clears it before this thread has created its context, this thread sets it again. */
function gcOfV8() {
  let gc;
  while (gc === undefined) {
    setFlagsFromString('--expose-gc');
    // `gc` exists only in contexts that are created while the flag is set.
    gc = runInNewContext('globalThis.gc');
    // V8 rejects cached code that was compiled with other flags: every thread would compile its later imports again.
    setFlagsFromString('--no-expose-gc');
  }
  return gc;
}
