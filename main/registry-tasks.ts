import type { OperationsTask, OperationsTasks } from '../core/http/operations-tasks.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import type { Collector } from '../registry/index.ts';

/** What commands ask a running process for. Disposing it ends what is under way. */
export function registryTasks(collector: Collector | undefined, secret: PlatformSecret): OperationsTasks & Disposable {
  const closing = new AbortController();
  return {
    token: tasksToken(secret),
    byName: collector ? tasksOf(collector) : {},
    signal: closing.signal,
    [Symbol.dispose]: () => closing.abort(new Error('The process closes')),
  };
}

/** By what a process knows that a command comes from somebody who has the platform's secret. */
export function tasksToken(secret: PlatformSecret): string {
  return secret.keyFor('operations tasks').toString('base64url');
}

/** The tasks of a collector, by the names of their commands. */
export function tasksOf(collector: Collector): Record<'collect' | 'verify', OperationsTask> {
  return {
    collect: (query, signal) => collector.collect({ isDry: query.get('dry_run') === 'yes' }, signal),
    verify: (query, signal) => collector.verify({ repair: query.get('repair') === 'yes' }, signal),
  };
}
