/** Where the platform lives that makes containers and networks: by this they are known when its data folder is replaced. */
import { homeIdLabel, homePlaceLabel } from './labels.ts';

export interface Home {
  /** Where the data folder is: the same for no two folders that exist at a time, whatever they are called in containers. */
  readonly place: string;
  /** Kept in the data folder: another one that replaces it at the same place has another. */
  readonly id: string;
  /** Whether a process lives on this machine whose data folder has an ID, wherever that folder is by now. */
  readonly isAlive: (id: string) => Promise<boolean>;
}

/** What is made without a home says so: else an image's own labels would count. */
export function homeLabels(home: Home | undefined): Record<string, string> {
  return { [homePlaceLabel]: home?.place ?? '', [homeIdLabel]: home?.id ?? '' };
}
