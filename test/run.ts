/**
 * The program of `npm test`. It installs the programs that tests call, starts Docker Engines and servers while the units run, runs
 * the other tests once with a PATH of only these programs, and stops the servers. Its last line has the counts as plain text, which
 * shows a run without tests. Arguments are passed to vitest.
 */
import { openTerminal } from '../setup/terminal.ts';
import { removeLeftEngines } from './kit/engines/left-engines.ts';
import { parseRequired, requiredVariable } from './kit/required.ts';
import type { Missing } from './kit/required.ts';
import { onSignal } from './run/interruption.ts';
import { parseOptions, usage } from './run/options.ts';
import { reportOutcome } from './run/outcome.ts';
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
  const interrupted = onSignal();
  const run = new TestRun({ options, terminal, folder: folder.path, missing, interrupted });
  const code = await run.all();
  await removeLeftEngines(folder.path);
  for (const { what, why } of missing) terminal.print(`Skipped ${what}: ${why}`);
  if (interrupted.signal)
    terminal.print(`${interrupted.signal} interrupted the run: tests that had not ended do not count`);
  return reportOutcome({ results: [...run.results.values()], code, required, missing });
}
