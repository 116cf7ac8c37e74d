import type { OperationsTask, OperationsTasks } from '../../core/http/operations.ts';
import type { PlatformSecret } from '../../core/secret/platform-secret.ts';
import type { AccountQuotas, GarbageCollector } from '../../registry/index.ts';

/** The parts of a registry that run its tasks. */
export interface RegistryTaskDeps {
  readonly collector: GarbageCollector;
  readonly quotas: AccountQuotas;
}

export type TaskName = 'collect' | 'verify' | 'quota';

/** The tasks that commands request from a running process. Disposing it cancels the tasks in progress. */
export function registryTasks(
  deps: RegistryTaskDeps | undefined,
  secret: PlatformSecret,
): OperationsTasks & Disposable {
  const closing = new AbortController();
  return {
    token: tasksToken(secret),
    byName: deps ? tasksOf(deps) : {},
    signal: closing.signal,
    [Symbol.dispose]: () => closing.abort(new Error('The process closes')),
  };
}

/** The token that proves to a process that the command has the platform's secret. */
export function tasksToken(secret: PlatformSecret): string {
  return secret.keyFor('operations tasks').toString('base64url');
}

/** The tasks by command name. */
export function tasksOf({ collector, quotas }: RegistryTaskDeps): Record<TaskName, OperationsTask> {
  return {
    collect: (query, signal) => collector.collect({ isDry: query.get('dry_run') === 'yes' }, signal),
    verify: (query, signal) => collector.verify({ repair: query.get('repair') === 'yes' }, signal),
    quota: (query, signal) => {
      const account = query.get('account');
      const maxBytes = query.get('max_bytes');
      if (account === null) return quotas.list(signal);
      if (maxBytes === null) return quotas.show(account);
      return quotas.set(account, maxBytes === 'default' ? undefined : Number(maxBytes));
    },
  };
}
