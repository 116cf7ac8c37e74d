#!/usr/bin/env node
/** The command line `berth`, an HTTP client of a platform. `cli/build.ts` bundles it into one file. */
import { run } from './run.ts';

const code = await run(process.argv.slice(2), {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  cwd: process.cwd(),
});
// Idle connections and an unread standard input would keep the process running.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
