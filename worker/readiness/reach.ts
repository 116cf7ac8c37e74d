/** While the port of a container stays closed: forwards it to a program on localhost, or reports which ports are open instead. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { ExpectedPorts } from '../../model/backend-port.ts';
import type { Containers } from '../docker/containers.ts';
import { explainListeners, portForwardFor } from './listeners.ts';
import { forwardPort, listListeners } from './port-helper.ts';

/** Most applications listen by then. A check runs a program in the container, which costs 50 ms of CPU time. */
export const firstCheckMs = 750;

/** For an application that takes minutes to start, a check every ten seconds costs little. */
const longestPauseMs = 10_000;

export interface Closed {
  readonly container: string;
  /** The address of the container. */
  readonly host: string;
  readonly ports: ExpectedPorts;
  readonly isConfigured: boolean;
  /** Called when the problem has changed. The problem is the rest of a sentence after "The container". */
  readonly onProblem: (problem: string) => void;
}

export interface ReachDeps {
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Log;
}

/** Checks a running container repeatedly until the signal aborts. Never rejects: without the helper nothing happens. */
export async function reachClosedPort(deps: ReachDeps, closed: Closed, signal: AbortSignal): Promise<void> {
  const forwarded = new Set<number>();
  let problem: string | undefined;
  for (let pauseMs = firstCheckMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      await deps.clock.sleep(pauseMs, signal);
      const next = await checkPort(deps, closed, { forwarded, signal });
      if (next === undefined || next === problem || signal.aborted) continue;
      problem = next;
      closed.onProblem(next);
    } catch (error) {
      if (!signal.aborted)
        deps.log.debug({ err: error, container: closed.container }, 'Cannot list the open ports of a container');
    }
  }
}

/** Checks once. Returns the problem, or `undefined` if the port is open or forwarded now. */
async function checkPort(
  { containers, log }: ReachDeps,
  { container, host, ports, isConfigured }: Closed,
  { forwarded, signal }: { readonly forwarded: Set<number>; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const listeners = await listListeners(containers, container, signal);
  const forward = portForwardFor(listeners, ports.port);
  if (!forward || forwarded.has(forward.port)) {
    // A program that opened its port a moment ago is reached before the owner reads this.
    const isOpen = listeners.some(({ port, scope }) => port === ports.port && scope !== 'localhost');
    return isOpen ? undefined : explainListeners(listeners, ports, isConfigured);
  }
  await forwardPort(containers, container, { host, ...forward });
  forwarded.add(forward.port);
  log.info({ container, ...forward }, 'Forwarding a port to a program that listens on localhost only');
  return undefined;
}
