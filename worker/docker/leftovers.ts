/**
 * What a platform has left whose data folder is gone: containers that no platform looks after any more, and their network. They
 * are known by where that folder was, which is where ours is now, and by its ID, which is another one.
 */
import type Docker from 'dockerode';
import type { Log } from '../../core/log/log.ts';
import { calling } from './engine-error.ts';
import type { DataFolderIdentity } from './data-folder-identity.ts';
import { dataFolderIdLabel, dataFolderLabel, nodeLabel } from './labels.ts';

interface LeftoversOptions {
  readonly node: string;
  readonly dataFolder: DataFolderIdentity;
  readonly log: Log;
}

type Labels = Readonly<Record<string, string>> | undefined;

/**
 * Removes containers and networks of folders that ours has replaced. What bears the name of this node is left to the worker: the
 * store, which may be elsewhere, says whether it is needed. So is what a process may still look after. Never throws because of
 * one of them; throws an `EngineError` when the engine does not answer.
 */
export async function removeLeftovers(docker: Docker, { node, dataFolder, log }: LeftoversOptions): Promise<void> {
  const filters = { label: [`${dataFolderLabel}=${dataFolder.place}`] };
  const isLeft = async (labels: Labels) => {
    const id = labels?.[dataFolderIdLabel];
    if (id === undefined || id === dataFolder.id || labels?.[nodeLabel] === node) return false;
    return !(await dataFolder.isAlive(id));
  };
  // Containers first: a network that is in use cannot be removed.
  for (const { Id, Labels } of await calling(() => docker.listContainers({ all: true, filters }))) {
    if (!(await isLeft(Labels))) continue;
    log.warn({ container: Id, node: Labels[nodeLabel] }, 'Container of a data folder that was replaced, removing it');
    await attempt(log, () => docker.getContainer(Id).remove({ force: true, v: true }));
  }
  for (const { Id, Name, Labels } of await calling(() => docker.listNetworks({ filters }))) {
    if (!(await isLeft(Labels))) continue;
    log.warn({ network: Name, node: Labels?.[nodeLabel] }, 'Network of a data folder that was replaced, removing it');
    await attempt(log, () => docker.getNetwork(Id).remove());
  }
}

async function attempt(log: Log, remove: () => Promise<unknown>): Promise<void> {
  try {
    await calling(remove);
  } catch (error) {
    log.warn({ err: error }, 'What was left of a replaced data folder cannot be removed');
  }
}
