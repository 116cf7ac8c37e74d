/**
 * Removes the containers and the network of a platform whose data folder was replaced, or whose only node was renamed. Their labels name
 * the place of our data folder, but another ID or node.
 */
import type Docker from 'dockerode';
import type { Log } from '../../core/log/log.ts';
import { callEngine } from './engine-error.ts';
import type { DataFolderIdentity } from './labels.ts';
import { dataFolderIdLabel, dataFolderLabel, nodeLabel } from './labels.ts';

interface LeftoversOptions {
  readonly node: string;
  readonly dataFolder: DataFolderIdentity;
  /** Whether no other node uses our data folder. Default: false. */
  readonly ownsFolder?: boolean | undefined;
  readonly log: Log;
}

type Labels = Readonly<Record<string, string>> | undefined;

/**
 * Removes the containers and networks of data folders that ours has replaced, and those of other names of the only node of our folder.
 * Those with the name of this node are left to the worker, because the store, which may be elsewhere, says whether they are needed;
 * those that a process may use are kept. A failed removal is logged. Throws an `EngineError` if the engine does not answer.
 */
export async function removeLeftovers(
  docker: Docker,
  { node, dataFolder, ownsFolder = false, log }: LeftoversOptions,
): Promise<void> {
  const filters = { label: [`${dataFolderLabel}=${dataFolder.location}`] };
  const isLeft = async (labels: Labels) => {
    const id = labels?.[dataFolderIdLabel];
    if (id === undefined || labels?.[nodeLabel] === node) return false;
    if (id === dataFolder.id) return ownsFolder;
    return !(await dataFolder.isAlive(id));
  };
  // Containers first: the engine does not remove a network that is in use.
  for (const { Id, Labels } of await callEngine(() => docker.listContainers({ all: true, filters }))) {
    if (!(await isLeft(Labels))) continue;
    log.warn(
      { container: Id, node: Labels[nodeLabel] },
      'Removing a container of a replaced data folder or a renamed node',
    );
    await attempt(log, () => docker.getContainer(Id).remove({ force: true, v: true }));
  }
  for (const { Id, Name, Labels } of await callEngine(() => docker.listNetworks({ filters }))) {
    if (!(await isLeft(Labels))) continue;
    log.warn(
      { network: Name, node: Labels?.[nodeLabel] },
      'Removing a network of a replaced data folder or a renamed node',
    );
    await attempt(log, () => docker.getNetwork(Id).remove());
  }
}

async function attempt(log: Log, remove: () => Promise<unknown>): Promise<void> {
  try {
    await callEngine(remove);
  } catch (error) {
    log.warn({ err: error }, 'Cannot remove a leftover of a replaced data folder or a renamed node');
  }
}
