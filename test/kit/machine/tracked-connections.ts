/** How long the kernel tracks connections that have ended (nf_conntrack). */
import { readFile, writeFile } from 'node:fs/promises';

const folder = '/proc/sys/net/netfilter';

/** The states of ended connections, with the kernel's own times in seconds. */
const defaults = { time_wait: 120, close: 10 };

/** Long enough that a late answer still finds its connection. */
const shortSeconds = 2;

/**
 * Makes the kernel forget ended connections soon, until the result is disposed. A Docker Engine reads all tracked connections of the
 * machine when a container starts and when it ends. Tests open thousands of connections, and with the kernel's default times, reading
 * them took 50 of the 130 s of CPU time that an engine used in a run. Does nothing where the times cannot be changed.
 */
export async function forgetEndedConnections(): Promise<AsyncDisposable> {
  const owned = new AsyncDisposableStack();
  for (const [state, defaultSeconds] of Object.entries(defaults)) {
    const file = `${folder}/nf_conntrack_tcp_timeout_${state}`;
    const found = await readFile(file, 'utf8').catch(() => undefined);
    if (found === undefined || !(await isWritten(file, shortSeconds))) continue;
    // A run that was killed has left the short time.
    const seconds = Number(found) === shortSeconds ? defaultSeconds : Number(found);
    owned.defer(async () => void (await isWritten(file, seconds)));
  }
  return owned;
}

async function isWritten(file: string, seconds: number): Promise<boolean> {
  return await writeFile(file, `${seconds}`).then(
    () => true,
    () => false,
  );
}
