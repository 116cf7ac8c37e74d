/** A repository is there exactly as long as its service is. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { StoreError } from '../../core/store/store.ts';
import { newService, services } from '../../model/service.ts';
import { manifestBatchSize, manifests, ofRepository } from './documents.ts';
import { RegistryError } from '../errors.ts';
import { removeNames } from './removal.ts';

/** All names that begin with `<account>/`, as a range of them: the character after the slash ends it. */
export function repositoriesOf(account: string): { from: string; before: string } {
  return { from: `${account}/`, before: `${account}0` };
}

/** Throws `name-unknown` if there is no such repository. */
export async function requireRepository(store: Store, repository: string): Promise<void> {
  if (!(await store.get(services, repository))) throw new RegistryError('name-unknown');
}

/**
 * Makes the service of a repository that is pushed to, if it is not there. What a service of the same name had before it
 * was deleted goes first, so that its tags do not come back. A crash in between leaves the service unmade, and the next
 * push does the rest. Two first pushes at a time cannot harm each other: each takes away only what is older than itself.
 */
export async function ensureRepository(
  { store, clock, defaultCluster }: { store: Store; clock: Clock; defaultCluster: string },
  repository: string,
): Promise<void> {
  const begun = await store.now();
  if (await store.get(services, repository)) return;
  await purge(store, repository, begun);
  const [account = '', name = ''] = repository.split('/');
  try {
    await store.insert(services, newService({ account, name, cluster: defaultCluster }, clock.now()));
  } catch (error) {
    if (!(error instanceof StoreError && error.code === 'duplicate')) throw error;
  }
}

async function purge(store: Store, repository: string, before: Date): Promise<void> {
  await removeNames(store, repository, before);
  const stored = store.scan(manifests, { ...ofRepository(repository), batchSize: manifestBatchSize });
  for await (const { id } of stored) await store.delete(manifests, id, ({ pushedAt }) => pushedAt < before);
}
