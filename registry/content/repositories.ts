/** A repository exists exactly as long as its service. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { findService, insertService, newService } from '../../model/service.ts';
import { manifestBatchSize, manifests, ofRepository } from './documents.ts';
import { RegistryError } from '../errors.ts';
import { removeNames } from './removal.ts';

/** The range of all names that begin with `<account>/`: it ends before the character after the slash. */
export function repositoriesOf(account: string): { from: string; before: string } {
  return { from: `${account}/`, before: `${account}0` };
}

/** Throws `name-unknown` if the repository does not exist. */
export async function requireRepository(store: Store, repository: string): Promise<void> {
  if (!(await findService(store, repository))) throw new RegistryError('name-unknown');
}

/**
 * Creates the service of a repository for its first push. First deletes the content of a deleted service of the same name, so that
 * its tags do not reappear. After a crash in between, the service does not exist and the next push does the rest. Concurrent
 * first pushes do not harm each other: each deletes only older content.
 *
 * @returns whether there was no service, so that content may have been deleted.
 */
export async function ensureRepository(
  { store, clock, defaultCluster }: { store: Store; clock: Clock; defaultCluster: string },
  repository: string,
): Promise<boolean> {
  const begun = await store.now();
  if (await findService(store, repository)) return false;
  await purgeRepository(store, repository, begun);
  const [account = '', name = ''] = repository.split('/');
  await insertService(store, newService({ account, name, cluster: defaultCluster }, clock.now()));
  return true;
}

/** Deletes all tags, images and manifests of a repository that were pushed before a time. Blobs are left to garbage collection. */
export async function purgeRepository(store: Store, repository: string, before: Date): Promise<void> {
  await removeNames(store, repository, before);
  const stored = store.scan(manifests, { ...ofRepository(repository), batchSize: manifestBatchSize });
  for await (const { id } of stored) await store.delete(manifests, id, ({ pushedAt }) => pushedAt < before);
}
