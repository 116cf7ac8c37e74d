/** The program of a thread with a proxy, which `running-thread.ts` starts. */
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { Registry } from 'prom-client';
import { systemClock } from '../../core/clock/system-clock.ts';
import { ConfigError } from '../../core/config/settings.ts';
import { collectAfterMs, collectStartupGarbage } from '../../core/heap/collect-start.mjs';
import { openLog } from '../../core/log/log.ts';
import type { LogLevel } from '../../core/log/log.ts';
import { SecureContexts } from '../../core/tls/secure-contexts.ts';
import { openThreadDrivers } from '../drivers.ts';
import type { ThreadDeps } from '../drivers.ts';
import { surviveStrayErrors } from '../process/stray-errors.ts';
import type { ThreadAnswers, ThreadData, ThreadMessage, ThreadRequest } from './messages.ts';
import { serveProxy } from './serve-proxy.ts';
import { measureThread } from './thread-metrics.ts';

if (parentPort) await run(parentPort, workerData as ThreadData);

async function run(port: MessagePort, data: ThreadData): Promise<void> {
  const send = (message: ThreadMessage) => port.postMessage(message);
  await using opening = new AsyncDisposableStack();
  const { config, share, apiUrl, address, reusePort } = data;
  const log = openLog(data.logLevel as LogLevel);
  const metrics = new Registry();
  opening.use(surviveStrayErrors({ clock: systemClock, log, metrics }));
  opening.use(measureThread(data.name, metrics));
  try {
    const deps = await openThreadDrivers({ config, log, metrics, share }, opening);
    const roles = new Set(data.roles);
    const contexts = data.certificates && new SecureContexts(data.certificates);
    const proxy = opening.use(await serveProxy(deps, { roles, apiUrl, address, reusePort, contexts }));
    opening.use(systemClock.after(collectAfterMs, collectStartupGarbage));
    const opened = opening.move();
    answerRequests(port, handlersOf(deps, opened, contexts));
    send({ kind: 'opened', hostPort: proxy.hostPort });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    send({ kind: 'refused', message: error.message });
  }
}

type Handlers = { readonly [Kind in keyof ThreadAnswers]: (request: ThreadRequest) => Promise<ThreadAnswers[Kind]> };

function handlersOf(
  { store, bus, metrics }: ThreadDeps,
  opened: AsyncDisposable,
  contexts: SecureContexts | undefined,
): Handlers {
  return {
    echo: async () => await Promise.resolve(undefined),
    ping: async () => {
      await Promise.all([store.ping(), bus.ping()]);
    },
    metrics: async () => await metrics.getMetricsAsJSON(),
    certificates: async ({ certificates = [] }) => {
      contexts?.replace(certificates);
      return await Promise.resolve(undefined);
    },
    close: async () => {
      await opened[Symbol.asyncDispose]();
    },
  };
}

function answerRequests(port: MessagePort, handlers: Handlers): void {
  const send = (message: ThreadMessage) => port.postMessage(message);
  port.on('message', (request: ThreadRequest) => {
    const { id, kind } = request;
    void handlers[kind](request)
      .then(
        (value) => send({ kind: 'answer', id, value }),
        (error: unknown) =>
          send({ kind: 'failed', id, message: error instanceof Error ? error.message : String(error) }),
      )
      // An open port would keep the thread running.
      .finally(() => void (kind === 'close' && port.close()));
  });
}
