/** Writes to a store at full speed until it is killed, and prints each acknowledged write. */
import { silentLog } from '../../core/log/log.ts';
import { openSqliteStore } from '../../core/store/sqlite/sqlite.ts';
import { upsert } from '../../core/store/upsert.ts';
import { pairs } from './pairs.ts';

const [folder = '', round = ''] = process.argv.slice(2);
const store = await openSqliteStore({ folder, collections: [pairs], log: silentLog() });
const filling = 'x'.repeat(500);

/** Lines in the pipe when the process is killed are lost: then the test checks less, but never reports a false error. */
function acknowledge(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function insertAndDelete(writer: number): Promise<never> {
  for (let n = 0; ; n += 1) {
    const id = `${round}-${writer}-${n}`;
    await store.insert(pairs, { id, left: n, right: n, filling });
    acknowledge(`inserted ${id} ${n}`);
    if (n % 3 > 0) continue;
    await store.delete(pairs, id);
    acknowledge(`deleted ${id} ${n}`);
  }
}

async function count(counter: number): Promise<never> {
  const id = `counter-${counter}`;
  for (;;) {
    const pair = await upsert(store, pairs, id, (current) => {
      const next = (current?.left ?? 0) + 1;
      return { id, left: next, right: next, filling };
    });
    acknowledge(`counted ${id} ${pair.left}`);
  }
}

await Promise.all([...[0, 1, 2, 3, 4, 5].map(insertAndDelete), ...[0, 0, 1].map(count)]);
