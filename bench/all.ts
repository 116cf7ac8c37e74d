/** `npm run bench`: runs all measurements, one after the other, each in its own process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

for (const name of [
  'run.ts',
  'api.ts',
  'drivers.ts',
  'registry.ts',
  'proxy.ts',
  'routes.ts',
  'idle-websockets.ts',
  'isolation.ts',
  'proxy-threads.ts',
]) {
  const child = spawn(process.execPath, [...process.execArgv, join(import.meta.dirname, name)], { stdio: 'inherit' });
  const forward = (signal: NodeJS.Signals) => void child.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, forward);
  const [code] = (await once(child, 'close')) as [number | null];
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(signal, forward);
  if (code !== 0) process.exit(code ?? 1);
}
