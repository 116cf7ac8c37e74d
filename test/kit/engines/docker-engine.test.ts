// Takes about 6 s
/** Engines for tests, on a machine that may have its own engine. */
import { expect, test } from 'vitest';
import { tryCommand } from '../../../setup/command.ts';
import { canStartEngines, startEngine, withoutFirewall } from './docker-engine.ts';
import { testEngines } from './engines.ts';

const canStart = await canStartEngines();
const why = canStart ? '' : ' (skipped: no Docker Engine can be started here)';

/** The default bridge of an engine. */
const bridge = 'docker0';

test.skipIf(!canStart)(`an engine that restarts leaves the bridge of the machine's own engine${why}`, async () => {
  await using stack = new AsyncDisposableStack();
  const { code } = await tryCommand('ip', ['link', 'add', bridge, 'type', 'bridge']);
  if (code === 0) stack.defer(async () => void (await tryCommand('ip', ['link', 'delete', bridge])));
  const engines = await Promise.all(testEngines().map(async ({ kind }) => await startEngine(kind, withoutFirewall)));
  for (const engine of engines) {
    stack.use(engine);
    await engine.restart();
    expect(await tryCommand('ip', ['link', 'show', bridge])).toMatchObject({ code: 0 });
  }
});
