/** What a caller can see: their own account, and nothing that tells whether anything else exists. */
import type { Store } from '../core/store/store.ts';
import { backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { ApiError } from '../model/api-error.ts';
import { serviceId, services } from '../model/service.ts';
import type { Service } from '../model/service.ts';
import type { Caller } from './authenticate.ts';

interface ServicePath {
  readonly account: string;
  readonly service: string;
}

/** Throws `AccountNotFound` for any account but the caller's. */
export function ownAccount(caller: Caller, account: string): void {
  if (caller.account !== account) throw new ApiError('AccountNotFound', `There is no account "${account}"`);
}

/** Throws `ServiceNotFound` for a service of any account but the caller's. */
export function ownService(caller: Caller, path: ServicePath): void {
  if (caller.account !== path.account) throw noService(path);
}

/** A service of the caller's account. Throws `ServiceNotFound`. */
export async function visibleService(store: Store, caller: Caller, path: ServicePath): Promise<Service> {
  ownService(caller, path);
  const service = await store.get(services, serviceId(path.account, path.service));
  if (!service) throw noService(path);
  return service;
}

/** A backend of the caller's account. Throws `BackendNotFound`. */
export async function visibleBackend(store: Store, caller: Caller, id: string): Promise<Backend> {
  const backend = await anyBackend(store, id);
  if (backend.account !== caller.account) throw noBackend(id);
  return backend;
}

/** A backend, whoever asks: its ID is secret enough for its status. Throws `BackendNotFound`. */
export async function anyBackend(store: Store, id: string): Promise<Backend> {
  const backend = await store.get(backends, id);
  if (!backend) throw noBackend(id);
  return backend;
}

function noService(path: ServicePath): ApiError {
  return new ApiError('ServiceNotFound', `There is no service "${path.account}/${path.service}"`);
}

function noBackend(id: string): ApiError {
  return new ApiError('BackendNotFound', `There is no backend "${id}"`);
}
