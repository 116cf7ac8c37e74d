/** While the port of a container stays closed: forwards it to a program on localhost, or reports which ports are open instead. */
import type { Clock } from '../../core/clock/clock.ts';
import type { Log } from '../../core/log/log.ts';
import type { ExpectedPorts } from '../../model/backend-port.ts';
import type { Containers } from '../docker/containers.ts';
import { explainListeners, portForwardFor } from './listeners.ts';
import type { Listener, PortForward } from './listeners.ts';
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
  /** The port from which connections must be forwarded; otherwise a free one. */
  readonly forwardFrom?: number;
  readonly isConfigured: boolean;
  /** Called when the port is forwarded. */
  readonly onForward: (forward: PortForward) => void;
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
  const { container } = closed;
  let forward: PortForward | undefined;
  let problem: string | undefined;
  for (let pauseMs = firstCheckMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      await deps.clock.sleep(pauseMs, signal);
      const listeners = await listListeners(deps.containers, container, signal);
      if (isForwarded(listeners, forward)) continue;
      const next = problemIn(listeners, closed, forward);
      if (next !== undefined && next !== problem && !signal.aborted) closed.onProblem((problem = next));
      forward = (await forwardIfNeeded(deps, closed, listeners)) ?? forward;
    } catch (error) {
      if (!signal.aborted) deps.log.debug({ err: error, container }, 'Cannot list the open ports of a container');
    }
  }
}

function isForwarded(listeners: readonly Listener[], forward: PortForward | undefined): boolean {
  return listeners.some(({ port, scope }) => port === forward?.port && scope === 'other');
}

/** Why the port is closed; `undefined` if it is open by now, or will be by its first forward. */
function problemIn(
  listeners: readonly Listener[],
  { ports, isConfigured }: Closed,
  forward: PortForward | undefined,
): string | undefined {
  if (!forward && portForwardFor(listeners, ports.port)) return undefined;
  // A program that opened its port a moment ago is reached before the owner reads this.
  const isOpen = listeners.some(({ port, scope }) => port === ports.port && scope !== 'localhost');
  return isOpen ? undefined : explainListeners(listeners, ports, isConfigured);
}

async function forwardIfNeeded(
  { containers, log }: ReachDeps,
  { container, host, ports, forwardFrom, onForward }: Closed,
  listeners: readonly Listener[],
): Promise<PortForward | undefined> {
  const needed = portForwardFor(listeners, ports.port);
  if (!needed) return undefined;
  const forward = { ...needed, port: forwardFrom ?? needed.port };
  await forwardPort(containers, container, { host, ...forward });
  onForward(forward);
  log.info({ container, ...forward }, 'Forwarding a port to a program that listens on localhost only');
  return forward;
}
