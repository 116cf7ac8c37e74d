import { factsOfEnd } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { changeBackend } from '../model/change-backend.ts';
import type { BackendChange } from '../model/change-backend.ts';
import type { ApiDependencies } from './room.ts';

interface EndingChange {
  /** The part of the API that writes it, for the log. */
  readonly endedBy: 'orphan-reaper' | 'connect' | 'request';
  readonly change: BackendChange;
}

/**
 * Writes the end of a backend, or a stop that its node carries out. An end is logged with its author.
 *
 * @returns the backend as it stands now, or `undefined` if there is none with this ID
 */
export async function endBackend(
  deps: Pick<ApiDependencies, 'store' | 'bus' | 'log'>,
  id: string,
  { endedBy, change }: EndingChange,
): Promise<Backend | undefined> {
  const { backend, isChanged } = await changeBackend(deps, id, change);
  if (backend && isChanged && !backend.live) {
    deps.log.info({ backend: id, node: backend.node, endedBy, ...factsOfEnd(backend) }, 'Backend ended');
  }
  return backend;
}
