/** While the port of a container stays closed: forwards to a program on localhost, or explains what listens instead. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { ExpectedPorts } from '../../model/backend-port.ts';
import type { Containers } from '../docker/containers.ts';
import { detourTo, explainListeners } from './listeners.ts';
import { forwardPort, listListeners } from './port-helper.ts';

/** Most applications listen by then, without the 50 ms of CPU that a program in a container costs. */
export const firstLookMs = 750;

/** To an application that takes minutes, a look every ten seconds costs little. */
const longestPauseMs = 10_000;

export interface Closed {
  readonly container: string;
  /** The address of the container. */
  readonly host: string;
  readonly ports: ExpectedPorts;
  readonly isConfigured: boolean;
  /** Called with what the container listens on when that has changed; it continues "The container". */
  readonly onProblem: (problem: string) => void;
}

export interface ReachDeps {
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Log;
}

/** Looks into a running container, again and again until the signal aborts. Never rejects: without the helper nothing happens. */
export async function reachClosedPort(deps: ReachDeps, closed: Closed, signal: AbortSignal): Promise<void> {
  const forwarded = new Set<number>();
  let problem: string | undefined;
  for (let pauseMs = firstLookMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      await deps.clock.sleep(pauseMs, signal);
      const next = await look(deps, closed, { forwarded, signal });
      if (next === undefined || next === problem || signal.aborted) continue;
      problem = next;
      closed.onProblem(next);
    } catch (error) {
      if (!signal.aborted) deps.log.debug({ err: error, container: closed.container }, 'Cannot look into a container');
    }
  }
}

/** Looks once. Returns what is wrong, or `undefined` if the port is about to be reached. */
async function look(
  { containers, log }: ReachDeps,
  { container, host, ports, isConfigured }: Closed,
  { forwarded, signal }: { readonly forwarded: Set<number>; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const listeners = await listListeners(containers, container, signal);
  const detour = detourTo(listeners, ports);
  if (!detour || forwarded.has(detour.port)) {
    // A program that opened its port a moment ago is reached before the owner reads this.
    const isOpen = listeners.some(({ port, scope }) => port === ports.port && scope !== 'localhost');
    return isOpen ? undefined : explainListeners(listeners, ports, isConfigured);
  }
  forwarded.add(detour.port);
  await forwardPort(containers, container, { host, ...detour });
  log.info({ container, ...detour }, 'Forwarding a port to a program that listens on localhost only');
  return undefined;
}
