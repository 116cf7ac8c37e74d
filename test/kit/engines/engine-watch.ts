/**
 * Docker Engine 20.10 can deadlock: while a container leaves a network (`getSvcRecords` of its libnetwork) and the endpoint of
 * another container is deleted (`processEndpointDelete`), each waits for the other's lock, and every later request for networks
 * hangs. This happens about once in ten thousand containers, and a run of tests would hang.
 */
import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { RunningEngine } from './docker-engine.ts';

const checkEveryMs = 5_000;

/** A busy engine answers within two seconds. */
const answerTimeoutMs = 30_000;

/** Requests an engine's networks regularly, and restarts the engine if it does not answer. Stops when disposed. */
export function watchEngine(engine: RunningEngine, onRestart: (restarting: Promise<void>) => void): AsyncDisposable {
  const closing = new AbortController();
  const watching = (async () => {
    for (;;) {
      await delay(checkEveryMs, undefined, { signal: closing.signal });
      if (await answers(engine.host, closing.signal)) continue;
      const restarting = engine.restart();
      onRestart(restarting);
      await restarting;
    }
    // Closing ends the loop. If an engine cannot be restarted, the tests that need it fail.
  })().catch(() => {});
  return {
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await watching;
    },
  };
}

/** Whether an engine answers at all; an error counts as an answer. */
async function answers(host: string, signal: AbortSignal): Promise<boolean> {
  const timeout = AbortSignal.timeout(answerTimeoutMs);
  return await new Promise((resolve, reject) => {
    const socketPath = host.slice('unix://'.length);
    const sent = request({ socketPath, path: '/networks', signal: AbortSignal.any([signal, timeout]) }, (response) => {
      response.resume();
      response.once('close', () => resolve(true));
    });
    sent.once('error', (error) => {
      if (signal.aborted) reject(error);
      else resolve(!timeout.aborted);
    });
    sent.end();
  });
}
