/** The labels of containers and networks: their node, their backend, and the data folder of their platform. */

export const nodeLabel = 'berth.node';
export const backendLabel = 'berth.backend';
export const dataFolderLabel = 'berth.data-folder';
export const dataFolderIdLabel = 'berth.data-folder-id';

/** Identifies the platform that created a container or network, so that leftovers are found after its data folder was replaced. */
export interface DataFolderIdentity {
  /** Device and path of the folder: different for any two folders that exist at a time, whatever their paths in containers. */
  readonly location: string;
  /** Kept in the data folder: a folder that replaces it at the same place has another ID. */
  readonly id: string;
  /** Whether a process of this machine uses the data folder with an ID, even if that folder was moved. */
  readonly isAlive: (id: string) => Promise<boolean>;
}

/** The labels of a data folder. They are empty texts if there is none, so that labels of the image do not count. */
export function dataFolderLabels(dataFolder: DataFolderIdentity | undefined): Record<string, string> {
  return { [dataFolderLabel]: dataFolder?.location ?? '', [dataFolderIdLabel]: dataFolder?.id ?? '' };
}
