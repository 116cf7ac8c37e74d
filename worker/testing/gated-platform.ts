/** A platform with one worker whose engine a test can close or silence. */
import { openEngineGate } from './engine-gate.ts';
import type { EngineGate } from './engine-gate.ts';
import { testEngineHost } from './test-engine.ts';
import { openTestPlatform } from './test-platform.ts';
import type { TestPlatform, TestWorkerOptions } from './test-platform.ts';
import type { Worker } from '../worker.ts';

export interface GatedPlatform extends AsyncDisposable {
  readonly gate: EngineGate;
  readonly platform: TestPlatform;
  openWorker(options?: TestWorkerOptions): Promise<Worker>;
}

/** Opens a platform without a worker. Its disposal opens the gate, and closes the workers first. */
export async function openGatedPlatform(
  engineOptions?: Parameters<typeof openTestPlatform>[1],
): Promise<GatedPlatform> {
  await using opening = new AsyncDisposableStack();
  const gate = opening.use(await openEngineGate(testEngineHost));
  const platform = opening.use(await openTestPlatform(gate.host, engineOptions));
  const opened = opening.move();
  return {
    gate,
    platform,
    openWorker: async (options) => opened.use(await platform.openWorker(options)),
    [Symbol.asyncDispose]: async () => {
      gate.open();
      await opened.disposeAsync();
    },
  };
}
