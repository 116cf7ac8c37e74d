/**
 * The program of `npm run check`: runs every script `check:…` of package.json, one per core at a time, and prints the commands that
 * repeat the failed ones.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { runGates } from './run/gates.ts';

const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>;
};
const gates = Object.fromEntries(Object.entries(scripts).filter(([name]) => name.startsWith('check:')));
const failed = await runGates({
  gates,
  concurrency: availableParallelism(),
  print: (text) => void process.stdout.write(text),
});
if (failed.length > 0) {
  process.stdout.write(['To repeat what failed:', ...failed.map((name) => `  npm run ${name}`), ''].join('\n'));
}
process.exitCode = failed.length > 0 ? 1 : 0;
