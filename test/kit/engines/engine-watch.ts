/**
 * Docker Engine 20.10 can lock itself up: while a container leaves a network (`getSvcRecords` of its libnetwork) and the
 * end-point of another one is forgotten (`processEndpointDelete`), each waits for the other's lock, and from then on whoever
 * asks for networks waits for ever. It happens about once in some ten thousand containers. A run of tests would hang with it.
 */
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunningEngine } from './docker-engine.ts';

const askEveryMs = 5_000;

/** A busy engine answers within a second or two. */
const patienceMs = 30_000;

/** Asks an engine for its networks, again and again, and starts it anew when it does not answer. Stops when disposed. */
export function watchEngine(engine: RunningEngine, onRestart: (restarting: Promise<void>) => void): AsyncDisposable {
  const closing = new AbortController();
  const watching = (async () => {
    for (;;) {
      await delay(askEveryMs, undefined, { signal: closing.signal });
      if (await answers(engine.host, closing.signal)) continue;
      const restarting = engine.restart();
      onRestart(restarting);
      await restarting;
    }
    // Closing ends it; and an engine that cannot be started again shows in the tests that need it.
  })().catch(() => {});
  return {
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await watching;
    },
  };
}

/** An engine that refuses is awake; only silence counts. */
async function answers(host: string, signal: AbortSignal): Promise<boolean> {
  const patience = AbortSignal.timeout(patienceMs);
  return await new Promise((resolve, reject) => {
    const socketPath = host.slice('unix://'.length);
    const asked = request(
      { socketPath, path: '/networks', signal: AbortSignal.any([signal, patience]) },
      (response) => {
        response.resume();
        response.once('close', () => resolve(true));
      },
    );
    asked.once('error', (error) => {
      if (signal.aborted) reject(error);
      else resolve(!patience.aborted);
    });
    asked.end();
  });
}
