/** What garbage collection and verification share: settings, the state of one run, and the list of repositories. */
import { Yielder } from '../../core/async/yielder.ts';
import type { Blobs } from '../../core/blobs/blobs.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { Store } from '../../core/store/store.ts';
import { images } from '../../model/image.ts';
import { blobLinks, manifests, tags } from '../content/documents.ts';
import type { LeaderLease } from './leader-lease.ts';

export interface GcSettings {
  /** Time from the end of one garbage collection to the start of the next. */
  readonly everyMs: number;
  /** How long unreferenced content stays after a client last pushed or mounted it, or the registry reported it as present. */
  readonly leaseMs: number;
  /** How long the bytes of a blob stay after they are marked because no repository links to them. */
  readonly removalWaitMs: number;
  /** How many untagged images each service keeps: the last ones pushed. */
  readonly keptUntaggedImages: number;
}

export interface GcDeps {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly gc: GcSettings;
}

/** One run of garbage collection or verification. */
export interface GcRun extends GcDeps {
  /** Without it, the run changes nothing: a dry run, or a verification without repair. */
  readonly lease: LeaderLease | undefined;
  /** In the store's time, before anything was read. */
  readonly startedAt: Date;
  /** Content that was last used before this time has no lease. */
  readonly before: Date;
  readonly yielder: Yielder;
  /** Aborts when the run must end early. */
  readonly signal: AbortSignal;
}

/** Begins a run, which ends early when its lease is lost. */
export async function beginRun(deps: GcDeps, lease: LeaderLease | undefined, signal: AbortSignal): Promise<GcRun> {
  const startedAt = await deps.store.now();
  return {
    ...deps,
    lease,
    startedAt,
    before: new Date(startedAt.getTime() - deps.gc.leaseMs),
    yielder: new Yielder(),
    signal: lease ? AbortSignal.any([signal, lease.lost]) : signal,
  };
}

/** Lists every repository that has any document, with or without a service. Skips through each index to the next repository. */
export async function* repositories(store: Store): AsyncGenerator<string, void, undefined> {
  let last: string | undefined;
  for (;;) {
    const after = { ...(last !== undefined && { range: { after: last } }), limit: 1 };
    const found = [
      ...(await store.find(manifests, { index: 'byRepository', ...after })),
      ...(await store.find(tags, { index: 'byRepository', ...after })),
      ...(await store.find(blobLinks, { index: 'byRepository', ...after })),
      ...(await store.find(images, { index: 'byTime', ...after })),
    ].map(({ repository }) => repository);
    const [next] = found.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    if (next === undefined) return;
    yield next;
    last = next;
  }
}
