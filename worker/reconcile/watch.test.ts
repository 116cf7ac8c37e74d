import { expect, it } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openGatedPlatform } from '../testing/gated-platform.ts';
import { eventually, whyNoTests } from '../testing/test-platform.ts';

const why = await whyNoTests();

it.skipIf(why !== undefined)(`a worker does not open while the engine sends no events ${why ?? ''}`, async () => {
  await using gated = await openGatedPlatform();
  const { gate } = gated;
  const events = /^GET \/events/;
  gate.silence(events);
  const clock = new ManualClock(new Date());
  const opening = gated.openWorker({ clock }).catch((error: unknown) => error);
  await eventually(async () => gate.asked(events) > 0 || undefined);
  await clock.advance(10_000);
  expect(await opening).toMatchObject({ name: 'EngineError', code: 'unavailable' });
  gate.open();
  await (await gated.openWorker()).ping();
});
