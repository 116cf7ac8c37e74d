/** What `npm run bench` runs: all measurements, one after the other, each in a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

for (const name of ['run.ts', 'engines.ts', 'registry.ts']) {
  const child = spawn(process.execPath, [...process.execArgv, join(import.meta.dirname, name)], { stdio: 'inherit' });
  const handOn = (signal: NodeJS.Signals) => void child.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, handOn);
  const [code] = (await once(child, 'close')) as [number | null];
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, handOn);
  if (code !== 0) process.exit(code ?? 1);
}
