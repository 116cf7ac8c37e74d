import type { Store } from '../../core/store/store.ts';
import { services } from '../../model/service.ts';

/** Whether anybody may pull from a repository. Of one that is private no more is told than of one that is absent. */
export async function isPublic(store: Store, repository: string): Promise<boolean> {
  return (await store.get(services, repository))?.public === true;
}
