/** One garbage collection, from the repositories to the bytes. */
import { sweepUploads } from '../content/uploads.ts';
import type { GcEvent } from './events.ts';
import { beginRun, repositories } from './gc-run.ts';
import type { GcDeps } from './gc-run.ts';
import type { LeaderLease } from './leader-lease.ts';
import { finishRemovals, markUnlinkedBlobs, noBlobs, removeMarked } from './sweep-blobs.ts';
import { sweepRepository } from './sweep-repository.ts';

/**
 * Collects garbage and reports the deleted content; the last event is the summary. Without a lease this is a dry run, which
 * changes nothing and reports the content that would be deleted.
 */
export async function* collect(
  deps: GcDeps,
  lease: LeaderLease | undefined,
  signal: AbortSignal,
): AsyncGenerator<GcEvent, void, undefined> {
  const begunMs = performance.now();
  const run = await beginRun(deps, lease, signal);
  // Pushes of blobs whose removal was interrupted by a crash would otherwise wait for the end of this run.
  const finished = lease ? await finishRemovals({ ...run, lease }) : noBlobs;
  const sum = { repositories: 0, manifests: 0, tags: 0, links: 0 };
  // In a dry run these links still exist when the blobs are counted.
  const goneLinks = new Map<string, number>();
  for await (const repository of repositories(deps.store)) {
    run.signal.throwIfAborted();
    const { manifests, tags, digests, bytes } = await sweepRepository(run, repository);
    const links = digests.length;
    sum.repositories += 1;
    sum.manifests += manifests;
    sum.tags += tags;
    sum.links += links;
    if (!lease) for (const digest of digests) goneLinks.set(digest, (goneLinks.get(digest) ?? 0) + 1);
    if (manifests + tags + links > 0) yield { type: 'repository', repository, manifests, tags, blobs: links, bytes };
  }
  const uploads = await sweepUploads(deps, { isDry: !lease, signal: run.signal });
  const marked = await markUnlinkedBlobs(run, goneLinks);
  const removed = lease ? await removeMarked({ ...run, lease }) : noBlobs;
  await lease?.finish();
  yield {
    type: 'collected',
    dry_run: !lease,
    ...sum,
    uploads,
    marked,
    removed: { blobs: finished.blobs + removed.blobs, bytes: finished.bytes + removed.bytes },
    removal_wait_ms: deps.gc.removalWaitMs,
    duration_ms: Math.round(performance.now() - begunMs),
  };
}
