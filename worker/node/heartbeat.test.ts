import { expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog } from '../../core/log/log.ts';
import { nodeHeartbeatMs } from '../../model/node.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';
import type { WorkerContext } from '../context.ts';
import { NodeDrain } from './drain.ts';
import { beginHeartbeat } from './heartbeat.ts';
import { expectCloseInFiveSeconds } from '../testing/closing.ts';

test('a heartbeat that the store does not answer delays the close for five seconds only, and is not logged', async () => {
  await using real = await openTestStore();
  const answer = Promise.withResolvers<never>();
  let isSilent = false;
  let unanswered = 0;
  const store = steered(real, {
    onCall: async ({ run }) => {
      if (!isSilent) return await run();
      unanswered += 1;
      return await answer.promise;
    },
  });
  const clock = new ManualClock();
  const logged: string[] = [];
  const worker = {
    store,
    machineClock: clock,
    log: openLog('warn', { write: (line) => void logged.push(line) }),
    settings: { node: 'node-1', cluster: 'default' },
    engine: { version: '' },
    runs: new Map(),
    drain: new NodeDrain(),
  } as unknown as WorkerContext;
  const heartbeats = await beginHeartbeat(worker, { host: '127.0.0.1', port: 1 });
  isSilent = true;
  await clock.advance(nodeHeartbeatMs);
  expect(unanswered).toBe(1);
  await expectCloseInFiveSeconds(heartbeats);
  answer.reject(new Error('No server answers'));
  await clock.advance(nodeHeartbeatMs);
  expect(logged).toEqual([]);
});
