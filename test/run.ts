/**
 * What `npm test` runs: installs what tests call, starts the Docker Engines and servers that they need while the units run, runs
 * the other tests once on a PATH with nothing else on it, stops what it started, and ends with the counts as plain text, so that a
 * run without tests is seen. Arguments go to vitest.
 */
import { openTerminal } from '../setup/terminal.ts';
import { parseRequired, requiredVariable } from './kit/required.ts';
import type { Missing } from './kit/required.ts';
import { onSignal } from './run/interruption.ts';
import { parseOptions, usage } from './run/options.ts';
import { conclude } from './run/outcome.ts';
import { openScratchFolder } from './run/scratch-folder.ts';
import { TestRun } from './run/test-run.ts';

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const options = parseOptions(args, process.env);
  if (options.help) {
    process.stdout.write(usage);
    return 0;
  }
  const required = parseRequired(process.env[requiredVariable]);
  const terminal = openTerminal(process.stderr);
  const missing: Missing[] = [];
  await using folder = await openScratchFolder();
  const run = new TestRun({ options, terminal, folder: folder.path, missing, interrupted: onSignal() });
  const code = await run.all();
  for (const { what, why } of missing) terminal.say(`Skipped ${what}: ${why}`);
  return conclude({ results: [...run.results.values()], code, required, missing });
}
