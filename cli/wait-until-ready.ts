/** Waits for a backend, and reports meanwhile why its container does not answer. */
import { setTimeout as delay } from 'node:timers/promises';
import type { BackendStatus, BerthClient } from '../client/index.ts';
import type { Session } from './session.ts';

/** The worker first checks the ports of a container after a second, and then less and less often. */
const checkMs = 2000;

/** Rejects with `BackendEnded` if the backend ends before it is ready, and with `TimedOut` after `timeoutSeconds`. */
export async function waitUntilReady(
  session: Session,
  backend: string,
  timeoutSeconds: number | undefined,
): Promise<BackendStatus> {
  const client = await session.client();
  const waited = new AbortController();
  const warnings = warnOfProblems(session, client, backend, AbortSignal.any([session.signal, waited.signal]));
  try {
    const limit = timeoutSeconds === undefined ? {} : { timeoutMs: timeoutSeconds * 1000 };
    return await client.waitUntilReady(backend, { signal: session.signal, ...limit });
  } finally {
    waited.abort();
    await warnings;
  }
}

/** Polls the status, because the status stream sends no event when only the problem of a status changes. */
async function warnOfProblems(
  { output }: Session,
  client: BerthClient,
  backend: string,
  signal: AbortSignal,
): Promise<void> {
  let shown: string | undefined;
  try {
    for (;;) {
      await delay(checkMs, undefined, { signal });
      const { status, problem } = await client.status(backend, { signal });
      if (status !== 'waiting' || problem === undefined || problem === shown) continue;
      output.warning(problem);
      shown = problem;
    }
  } catch {
    // The wait has ended, or reports the same failure.
  }
}
