/** Runs the measurements of connects and idle memory, and prints their ratios to peers on the same machine in the same run. */
import { startPlatform } from '../test/kit/platform/platform.ts';
import { startEngine } from '../test/kit/engines/docker-engine.ts';
import { connectToReady } from './connect-to-ready.ts';
import { table } from './measurements.ts';
import { heldKey } from './held-key.ts';
import { idleMemory, idleStarts } from './memory.ts';
import { initStart } from './init-start.ts';

await using engine = await startEngine('stable');
await using platform = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn' } });
const rows = [
  await connectToReady(platform, engine),
  await heldKey(platform),
  await idleMemory(platform),
  ...(await idleStarts(engine)),
  await initStart(),
];
process.stdout.write(`${table(rows)}\n`);
