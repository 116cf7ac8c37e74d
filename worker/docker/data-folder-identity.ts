/** Identifies the platform that created a container or network, so that leftovers are found after its data folder was replaced. */
import { dataFolderIdLabel, dataFolderLabel } from './labels.ts';

export interface DataFolderIdentity {
  /** Where the data folder is: the same for no two folders that exist at a time, whatever they are called in containers. */
  readonly place: string;
  /** Kept in the data folder: another one that replaces it at the same place has another. */
  readonly id: string;
  /** Whether a process lives on this machine whose data folder has an ID, wherever that folder is by now. */
  readonly isAlive: (id: string) => Promise<boolean>;
}

/** Labels for containers and networks. They are also set, to empty texts, without a data folder: an image could have such labels itself. */
export function dataFolderLabels(dataFolder: DataFolderIdentity | undefined): Record<string, string> {
  return { [dataFolderLabel]: dataFolder?.place ?? '', [dataFolderIdLabel]: dataFolder?.id ?? '' };
}
