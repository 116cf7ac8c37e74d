/** Runs every measurement once and prints them as ratios, each against a peer on the same machine in the same run. */
import { startPlatform } from '../test/kit/platform/platform.ts';
import { startEngine } from '../test/kit/engines/docker-engine.ts';
import { connectToReady } from './connect-to-ready.ts';
import { table } from './figures.ts';
import { heldKey } from './held-key.ts';
import { idleMemory } from './idle-memory.ts';
import { initStart } from './init-start.ts';

await using engine = await startEngine('stable');
await using platform = await startPlatform({ engine, settings: { BERTH_LOG_LEVEL: 'warn' } });
const rows = [
  await connectToReady(platform, engine),
  await heldKey(platform),
  await idleMemory(platform),
  await initStart(),
];
process.stdout.write(`${table(rows)}\n`);
