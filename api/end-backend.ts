import { backendChanged } from '../contract/messages.ts';
import { backends, factsOfEnd } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import type { ApiDependencies } from './room.ts';

interface EndingChange {
  /** The part of the API that writes it, for the log. */
  readonly endedBy: 'caretaker' | 'connect' | 'request';
  readonly change: (current: Backend) => Backend;
}

/**
 * Writes the end of a backend, or a stop that its node carries out. An end is logged with its author, and what changed is published.
 *
 * @returns the backend as it stands now, or `undefined` if there is none with this ID
 */
export async function endBackend(
  { store, bus, log }: Pick<ApiDependencies, 'store' | 'bus' | 'log'>,
  id: string,
  { endedBy, change }: EndingChange,
): Promise<Backend | undefined> {
  let isChanged = false;
  const backend = await store.update(backends, id, (current) => {
    const next = change(current);
    isChanged = next !== current;
    return next;
  });
  if (!backend || !isChanged) return backend;
  if (!backend.live) log.info({ backend: id, node: backend.node, endedBy, ...factsOfEnd(backend) }, 'Backend ended');
  await bus.publish(backendChanged, { backend: id, status: backend.status });
  return backend;
}
