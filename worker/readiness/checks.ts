/** The checks that a service may require before a backend counts as ready, beyond an open port. */
import { request } from '../../core/http/node-http.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { portHelperTarget } from '../docker/containers.ts';
import type { Containers } from '../docker/containers.ts';
import type { ImageHealthcheck } from '../docker/image-config.ts';

/** Checks once. Returns `undefined` if the application is ready, or the problem, as the rest of a sentence after "The container". */
export type Check = (signal: AbortSignal) => Promise<string | undefined>;

/** A user waits for the result, so the next attempt must not wait for one that hangs. */
const answerWithinMs = 5_000;

/** Statuses outside of this range are errors. A redirect is not: many applications redirect to a log-in. */
const firstGoodStatus = 200;
const firstBadStatus = 400;

/** The exit code of a program that `port-helper within` has ended. */
const sigalrmExit = 128 + 14;

/** An attempt costs a request or a program; most applications are ready a moment after they listen. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

/** Earlier problems are not reported: most applications need a moment. */
const reportAfterMs = 1_000;

interface HttpTarget {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

/** Requests a path. The application sees the host `localhost`, which applications with few allowed hosts accept. */
export function httpCheck(target: HttpTarget, clock: Clock): Check {
  const { path } = target;
  return async (signal) => {
    try {
      const status = await statusOf(target, clock, signal);
      if (status >= firstGoodStatus && status < firstBadStatus) return undefined;
      return `answers GET ${path} with ${status}, expected 200 to 399`;
    } catch (error) {
      signal.throwIfAborted();
      const { code } = error as { code?: string };
      if (code === 'ECONNREFUSED') return `does not accept connections for GET ${path}`;
      const why = error === timedOut ? `within ${answerWithinMs / 1000} seconds` : 'as HTTP';
      return `does not answer GET ${path} ${why}`;
    }
  };
}

const timedOut = new Error('Timed out');

async function statusOf({ host, port, path }: HttpTarget, clock: Clock, signal: AbortSignal): Promise<number> {
  const headers = { host: 'localhost', 'user-agent': 'berth-readiness', accept: '*/*' };
  return await new Promise<number>((resolve, reject) => {
    const sent = request({ host, port, path, headers, agent: false, signal });
    const limit = clock.after(answerWithinMs, () => sent.destroy(timedOut));
    sent.once('close', () => limit[Symbol.dispose]());
    sent.once('response', (response) => {
      resolve(response.statusCode ?? 0);
      // The body may have no end.
      sent.destroy();
    });
    sent.on('error', reject);
    sent.end();
  });
}

interface HealthCheckIn {
  readonly containers: Containers;
  readonly container: string;
  /** Whether the container has the port helper, which ends a check that takes too long. */
  readonly hasHelper: boolean;
}

/** Runs the health check of an image in the container, as the engine would, but only until it succeeds. */
export function healthCheck(
  { containers, container, hasHelper }: HealthCheckIn,
  { command, timeoutMs }: ImageHealthcheck,
): Check {
  const seconds = Math.max(Math.ceil(timeoutMs / 1000), 1);
  const limited = hasHelper ? [portHelperTarget, 'within', String(seconds), ...command] : command;
  return async (signal) => {
    const { exitCode } = await containers.execute(container, { command: limited }, signal);
    if (exitCode === 0) return undefined;
    if (exitCode === sigalrmExit) return `does not pass the HEALTHCHECK of its image within ${seconds} seconds`;
    return `does not pass the HEALTHCHECK of its image, which exits with ${exitCode ?? 'an unknown code'}`;
  };
}

/** Repeats a check until the application is ready. Rejects with the signal's reason when it aborts. */
export async function untilChecked(
  check: Check,
  { clock, onProblem }: { readonly clock: Clock; readonly onProblem: (problem: string) => void },
  signal: AbortSignal,
): Promise<void> {
  const startMs = clock.now().getTime();
  let reported: string | undefined;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    signal.throwIfAborted();
    const problem = await check(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      return `cannot be checked: ${error instanceof Error ? error.message : String(error)}`;
    });
    if (problem === undefined) return;
    if (problem !== reported && clock.now().getTime() - startMs >= reportAfterMs) {
      reported = problem;
      onProblem(problem);
    }
    await clock.sleep(pauseMs, signal);
  }
}
