/** Waits until a started backend is ready: its port accepts a connection, and the check of its service succeeds. */
import { settledWithin } from '../../core/async/with-timeout.ts';
import { advance, becomeReady, withStartProblem } from '../../model/backend.ts';
import type { BackendAddress } from '../../model/backend.ts';
import { expectedPorts } from '../../model/backend-port.ts';
import type { ExpectedPorts } from '../../model/backend-port.ts';
import type { WorkerContext } from '../context.ts';
import { healthCheck, httpCheck, untilChecked } from '../readiness/checks.ts';
import type { Check } from '../readiness/checks.ts';
import type { PortForward } from '../readiness/listeners.ts';
import { untilListening } from '../readiness/listening.ts';
import type { ReachedPort } from '../readiness/listening.ts';
import { reachClosedPort } from '../readiness/reach.ts';
import type { Run } from './run.ts';

/** When the port of a ready backend is checked again. Programs that look for a free port listen at their address long before that. */
export const recheckAfterMs = 1_000;

/** A program that is silent for longer is broken. */
const recheckForMs = 60_000;

/** Waits until the started container of a run is ready, then writes `ready`. */
export async function becomeReadyWhenListening(worker: WorkerContext, run: Run): Promise<void> {
  const { clock } = worker;
  const { address: host, backend } = run;
  if (host === undefined) throw new Error('A container without an address cannot become ready');
  const startedAt = clock.now();
  void run.write((current) => advance(advance(current, 'starting', startedAt), 'waiting', startedAt));
  const ports = expectedPorts(backend.port, run.image?.ports ?? []);
  const onProblem = (problem: string) => reportProblem(worker, run, problem);
  const open = await untilReached(worker, run, { host, ports, onProblem }, run.startUpSignal);
  const address = { host, ...open };
  run.usePort(address.port);
  const check = checkOf(worker, run, address);
  if (check) await untilChecked(check, { clock, onProblem }, run.startUpSignal);
  await writeReady(worker, run, address);
  if (address.targetPort === undefined) void recheck(worker, run, address);
}

/**
 * Checks the port of a ready backend once more, and otherwise forwards it: it may have been open only for a moment, before the program
 * listened on localhost. Never rejects.
 */
async function recheck(worker: WorkerContext, run: Run, { host, port }: { host: string; port: number }): Promise<void> {
  const { clock, log } = worker;
  const onProblem = (problem: string) => {
    log.warn({ backend: run.id, problem }, 'A ready backend accepts no connections');
  };
  await settledWithin({ clock, ms: recheckForMs, signal: run.signal }, async (signal) => {
    await clock.sleep(recheckAfterMs, signal);
    await untilReached(worker, run, { host, ports: { port }, forwardFrom: port, onProblem }, signal);
  });
}

/** The check that the service requires beyond an open port. */
function checkOf(
  { engine, portHelper, clock }: WorkerContext,
  run: Run,
  at: { host: string; port: number },
): Check | undefined {
  const { readiness } = run.backend;
  if (readiness?.type === 'http') return httpCheck({ ...at, path: readiness.path }, clock);
  if (readiness?.type !== 'healthcheck' || !run.container || !run.image?.healthcheck) return undefined;
  const where = { containers: engine.containers, container: run.container.id, hasHelper: portHelper !== undefined };
  return healthCheck(where, run.image.healthcheck);
}

interface Unreached {
  readonly host: string;
  readonly ports: ExpectedPorts;
  /** The port from which connections must be forwarded; otherwise a free one. */
  readonly forwardFrom?: number;
  /** Called when the reason why the port is closed has changed. */
  readonly onProblem: (problem: string) => void;
}

/** Waits for the port, and meanwhile searches the container for the reason why it is closed. */
async function untilReached(
  worker: WorkerContext,
  run: Run,
  unreached: Unreached,
  signal: AbortSignal,
): Promise<ReachedPort> {
  const { clock, log } = worker;
  const reached = new AbortController();
  const container = run.container?.id;
  let forward: ReachedPort | undefined;
  if (worker.portHelper && container !== undefined) {
    const onForward = ({ port, targetPort }: PortForward) => (forward = { port, targetPort });
    const closed = { ...unreached, container, isConfigured: run.backend.port !== undefined, onForward };
    const deps = { containers: worker.engine.containers, clock, log };
    void reachClosedPort(deps, closed, AbortSignal.any([signal, reached.signal]));
  }
  try {
    return await untilListening({ ...unreached, forward: () => forward }, clock, signal);
  } finally {
    reached.abort();
  }
}

function reportProblem({ log }: WorkerContext, run: Run, problem: string): void {
  log.info({ backend: run.id, problem }, 'Backend is not ready yet');
  void run.write((backend) => withStartProblem(backend, problem));
}

async function writeReady(worker: WorkerContext, run: Run, address: BackendAddress): Promise<void> {
  const readyAt = worker.clock.now();
  let isChanged = false;
  const ready = await run.write((backend) => {
    const next = becomeReady(backend, address, readyAt);
    isChanged = next !== backend;
    return next;
  });
  if (!ready?.readyAt || !isChanged) return;
  const ms = ready.readyAt.getTime() - ready.createdAt.getTime();
  worker.metrics.spawned('ready', ms / 1000);
  worker.log.info({ backend: run.id, port: address.port, ms }, 'Backend is ready');
}
