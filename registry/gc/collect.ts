/** One collection, from the repositories to the bytes. */
import { sweepUploads } from '../content/upload-sweep.ts';
import { condemnBlobs, countUnlinked, removeCondemned } from './bytes.ts';
import type { Tally } from './bytes.ts';
import type { Collecting, CollectorDeps } from './collecting.ts';
import type { CollectionEvent } from './events.ts';
import { Yielder } from '../../core/async/yielder.ts';
import { collectRepository } from './repository.ts';
import type { Turn } from './turn.ts';
import { repositories } from './walk.ts';

/**
 * Collects, and tells what goes; the last event is the summary. Without a turn it is a dry run, which changes nothing and
 * tells what would go.
 */
export async function* collect(
  deps: CollectorDeps,
  turn: Turn | undefined,
  signal: AbortSignal,
): AsyncGenerator<CollectionEvent, void, undefined> {
  const begunMs = performance.now();
  const startedAt = await deps.store.now();
  const before = new Date(startedAt.getTime() - deps.settings.leaseMs);
  const stop = turn ? AbortSignal.any([signal, turn.lost]) : signal;
  const collecting: Collecting = { ...deps, startedAt, before, isDry: !turn, yielder: new Yielder(), signal: stop };
  const sum = { repositories: 0, manifests: 0, tags: 0, links: 0 };
  const goneLinks = new Map<string, number>();
  for await (const repository of repositories(deps.store)) {
    stop.throwIfAborted();
    sum.repositories += 1;
    const collected = await collectRepository(collecting, repository);
    sum.manifests += collected.manifests;
    sum.tags += collected.tags;
    sum.links += collected.links;
    // Only a dry run needs them: otherwise the links are gone.
    if (!turn) for (const digest of collected.digests) goneLinks.set(digest, (goneLinks.get(digest) ?? 0) + 1);
    const { manifests, tags, links, bytes } = collected;
    if (manifests + tags + links > 0) yield { type: 'repository', repository, manifests, tags, blobs: links, bytes };
  }
  const uploads = await sweepUploads(deps, { isDry: !turn, signal: stop });
  const { condemned, removed } = await collectBytes(collecting, turn, goneLinks);
  await turn?.finish();
  yield {
    type: 'collected',
    dry_run: !turn,
    ...sum,
    uploads,
    condemned,
    removed,
    removal_wait_ms: deps.settings.removalWaitMs,
    duration_ms: Math.round(performance.now() - begunMs),
  };
}

async function collectBytes(
  collecting: Collecting,
  turn: Turn | undefined,
  goneLinks: ReadonlyMap<string, number>,
): Promise<{ condemned: Tally; removed: Tally }> {
  if (!turn) return { condemned: await countUnlinked(collecting, goneLinks), removed: { blobs: 0, bytes: 0 } };
  const condemned = await condemnBlobs(collecting);
  return { condemned, removed: await removeCondemned({ ...collecting, turn }, collecting.signal) };
}
