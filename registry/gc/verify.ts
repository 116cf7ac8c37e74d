/** Verifies everything that is stored: bytes against their digests, references against what exists. */
import type { Problem, VerificationEvent } from './events.ts';
import { beginRun, repositories } from './gc-run.ts';
import type { GcDeps } from './gc-run.ts';
import type { LeaderLease } from './leader-lease.ts';
import { finishRemovals } from './sweep-blobs.ts';
import { verifyBlobs } from './verify-blobs.ts';
import { verifyRepository } from './verify-repository.ts';

/** Verifies and reports problems; the last event is the summary. With the lease, it repairs what can be repaired. */
export async function* verify(
  deps: GcDeps,
  lease: LeaderLease | undefined,
  signal: AbortSignal,
): AsyncGenerator<VerificationEvent, void, undefined> {
  const begunMs = performance.now();
  const run = await beginRun(deps, lease, signal);
  // Pushes of blobs whose removal was interrupted by a crash would otherwise wait for the end of this run.
  if (lease) await finishRemovals({ ...run, lease });
  const seen = { blobs: 0, bytes: 0, manifests: 0, tags: 0 };
  const sum = { repositories: 0, problems: 0, repaired: 0 };
  const counted = (problem: Problem) => {
    sum.problems += 1;
    if (problem.repaired) sum.repaired += 1;
    return problem;
  };
  // Bytes first: removed bytes are then reported as missing in every repository that needs them.
  for await (const problem of verifyBlobs(run, seen)) yield counted(problem);
  for await (const repository of repositories(deps.store)) {
    sum.repositories += 1;
    for await (const problem of verifyRepository(run, repository, seen)) yield counted(problem);
  }
  const durationMs = Math.round(performance.now() - begunMs);
  yield { type: 'verified', repair: lease !== undefined, ...seen, ...sum, duration_ms: durationMs };
}
