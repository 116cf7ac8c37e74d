/** Cleans up after engines whose tests were killed, so that interrupted runs do not fill the machine with bridges and firewall rules. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bridgeFile, killShims, removeBridge, removeFolder } from './docker-engine.ts';

/** Ends the engines whose data is in a folder, and removes their bridges and their data. */
export async function removeLeftEngines(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const engine = join(folder, name);
    const bridge = await readFile(join(engine, bridgeFile), 'utf8').catch(() => undefined);
    if (bridge === undefined) continue;
    await kill(join(engine, 'pid'), engine);
    await kill(join(engine, 'exec/containerd/containerd.pid'), engine);
    await killShims(engine);
    for (const each of await bridgesOf(engine, bridge)) await removeBridge(each);
    await removeFolder(engine);
  }
}

/** Kills the process with the ID in a file, unless the ID belongs to another process by now, and waits until it has ended. */
async function kill(pidFile: string, engine: string): Promise<void> {
  const pid = Number(await readFile(pidFile, 'utf8').catch(() => '0'));
  const isRunning = async () => (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes(engine);
  if (pid === 0) return;
  while (await isRunning()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      return; // It has ended.
    }
    await delay(10);
  }
}

/** The bridge of an engine, and those of its networks, as the file in which it stores networks names them. */
async function bridgesOf(engine: string, bridge: string): Promise<string[]> {
  const stored = await readFile(join(engine, 'data/network/files/local-kv.db'), 'latin1').catch(() => '');
  return [...new Set([bridge, ...Array.from(stored.matchAll(/"BridgeName":"([\w.-]+)"/g), ([, name = '']) => name)])];
}
