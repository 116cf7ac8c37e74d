import { backendChanged } from '../contract/messages.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Log } from '../core/log/log.ts';
import type { Store } from '../core/store/store.ts';
import { backends } from './backend.ts';
import type { Backend } from './backend.ts';

/** A transition of `backend.ts` with all its arguments but the backend. */
export type BackendChange = (backend: Backend) => Backend;

export interface ChangedBackend {
  /** The current backend; `undefined` if there is none with this ID. */
  readonly backend: Backend | undefined;
  readonly isChanged: boolean;
}

/** Changes a backend's document and, if it changed, publishes that. Throws errors of the store and of the change. */
export async function changeBackend(
  { store, bus, log }: { readonly store: Store; readonly bus: Bus; readonly log: Log },
  id: string,
  change: BackendChange,
): Promise<ChangedBackend> {
  let isChanged = false;
  const backend = await store.update(backends, id, (current) => {
    const next = change(current);
    isChanged = next !== current;
    return next;
  });
  if (!backend || !isChanged) return { backend, isChanged: false };
  bus.publish(backendChanged, { backend: id, status: backend.status }).catch((error: unknown) => {
    log.warn({ err: error, backend: id }, 'Cannot publish the change of a backend, listeners find it in the store');
  });
  return { backend, isChanged };
}
