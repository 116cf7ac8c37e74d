/** Checking everything that is stored: bytes against their digests, and what refers to something against what is there. */
import type { CollectorDeps } from './collecting.ts';
import type { Problem, VerificationEvent } from './events.ts';
import { Yielder } from '../../core/async/yielder.ts';
import type { Turn } from './turn.ts';
import { verifyBlobs } from './verify-blobs.ts';
import { verifyRepository } from './verify-repository.ts';
import type { Verifying } from './verifying.ts';
import { repositories } from './walk.ts';

/** Checks, and tells what is wrong; the last event is the summary. With a turn, it repairs what can be repaired. */
export async function* verify(
  deps: CollectorDeps,
  turn: Turn | undefined,
  signal: AbortSignal,
): AsyncGenerator<VerificationEvent, void, undefined> {
  const begunMs = performance.now();
  const before = new Date((await deps.store.now()).getTime() - deps.settings.leaseMs);
  const seen = { blobs: 0, bytes: 0, manifests: 0, tags: 0 };
  const stop = turn ? AbortSignal.any([signal, turn.lost]) : signal;
  const verifying: Verifying = { ...deps, turn, before, yielder: new Yielder(), signal: stop, seen };
  const sum = { repositories: 0, problems: 0, repaired: 0 };
  const counted = (problem: Problem) => {
    sum.problems += 1;
    if (problem.repaired) sum.repaired += 1;
    return problem;
  };
  // The bytes first: what is removed of them is then told as missing in every repository that needs it.
  for await (const problem of verifyBlobs(verifying)) yield counted(problem);
  for await (const repository of repositories(deps.store)) {
    sum.repositories += 1;
    for await (const problem of verifyRepository(verifying, repository)) yield counted(problem);
  }
  const durationMs = Math.round(performance.now() - begunMs);
  yield { type: 'verified', repair: turn !== undefined, ...seen, ...sum, duration_ms: durationMs };
}
