#!/usr/bin/env node
/** The command line `berth`: speaks HTTP to a platform. `cli/build.ts` bundles it into one file. */
import { run } from './run.ts';

const code = await run(process.argv.slice(2), {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  cwd: process.cwd(),
});
// Connections that are kept alive, and a standard input that nothing reads, must not keep the process running.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
