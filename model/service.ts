/** Services and their environments. */
import { defaultEnvironmentName } from '../contract/names.ts';
import type { Collection, Store } from '../core/store/store.ts';
import { upsert } from '../core/store/upsert.ts';
import { ApiError } from './api-error.ts';
import type { ServiceSettings } from './service-settings.ts';

/** A named default for spawns of a service. */
export interface Environment {
  readonly name: string;
  /** A tag or digest; `latest` where nothing else was set. */
  readonly imageTag: string;
  readonly cluster: string;
  readonly createdAt: Date;
  readonly lastSpawnedAt?: Date;
}

/** A service. Its ID is `<account>/<name>`, which is also its image repository. */
export interface Service {
  readonly id: string;
  readonly account: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly environments: readonly Environment[];
  readonly lastImageDigest?: string;
  readonly lastImageUploadTime?: Date;
  readonly lastSpawnedAt?: Date;
  /** Whether its images can be pulled without credentials. Absent: no. */
  readonly public?: boolean;
  /** The defaults of its backends. Absent: the platform's defaults. */
  readonly settings?: ServiceSettings;
  /** When it was deleted. It counts as absent from then on, until its document is deleted, too. */
  readonly deletedAt?: Date;
  /** Backends, images and spawn tokens from before this time belong to a deleted service with this name, and must be removed. */
  readonly clearBefore?: Date;
}

export const services: Collection<Service, 'byAccount' | 'byClearing'> = {
  name: 'services',
  indexes: { byAccount: ['account', 'name'], byClearing: ['clearBefore'] },
};

/** How many environments a service may have: they are all in its document. */
const maxEnvironments = 100;

/** The tag that is spawned until `update` names another one: what `docker push` without a tag writes. */
const defaultImageTag = 'latest';

/** The ID of a service, and the name of its image repository. */
export function serviceId(account: string, name: string): string {
  return `${account}/${name}`;
}

/** A new service, with its default environment. */
export function newService(about: { account: string; name: string; cluster: string }, now: Date): Service {
  return {
    id: serviceId(about.account, about.name),
    account: about.account,
    name: about.name,
    createdAt: now,
    environments: [{ name: defaultEnvironmentName, imageTag: defaultImageTag, cluster: about.cluster, createdAt: now }],
  };
}

/** Reads a service that is not deleted. */
export async function findService(store: Store, id: string): Promise<Service | undefined> {
  const service = await store.get(services, id);
  return service?.deletedAt ? undefined : service;
}

/** Inserts a new service, or replaces a deleted one with its name. @returns whether the name was free. */
export async function insertService(store: Store, fresh: Service): Promise<boolean> {
  let isFree = false;
  await upsert(store, services, fresh.id, (current) => {
    isFree = !current || current.deletedAt !== undefined;
    if (current && !isFree) return current;
    return { ...fresh, ...(current?.clearBefore && { clearBefore: current.clearBefore }) };
  });
  return isFree;
}

/** Deletes a service: from now on it counts as absent, and its backends and images must be removed. Unchanged if it is deleted. */
export function withDeletion(service: Service, now: Date): Service {
  return service.deletedAt ? service : { ...service, deletedAt: now, clearBefore: now };
}

/** Records that everything from before a time was removed. Unchanged if the service was deleted since. */
export function withClearing(service: Service, before: Date): Service {
  const { clearBefore, ...rest } = service;
  return service.deletedAt || clearBefore?.getTime() !== before.getTime() ? service : rest;
}

/** Whether a backend or spawn token belongs to a deleted service with the name of this one, and is about to be removed. */
export function isOfDeleted({ clearBefore }: Service, { createdAt }: { readonly createdAt: Date }): boolean {
  return clearBefore !== undefined && createdAt < clearBefore;
}

/** Throws `EnvironmentNotFound`. */
export function environmentOf(service: Service, name: string = defaultEnvironmentName): Environment {
  const found = service.environments.find((environment) => environment.name === name);
  if (!found) throw new ApiError('EnvironmentNotFound', `Service "${service.id}" has no environment "${name}"`);
  return found;
}

/** Adds an environment. Throws `EnvironmentExists` and `TooManyEnvironments`. */
export function withEnvironment(
  service: Service,
  added: Pick<Environment, 'name' | 'cluster'> & { readonly imageTag?: string | undefined },
  now: Date,
): Service {
  const { name, cluster, imageTag = defaultImageTag } = added;
  if (service.environments.some((each) => each.name === name)) {
    throw new ApiError('EnvironmentExists', `Service "${service.id}" has an environment "${name}" already`);
  }
  if (service.environments.length >= maxEnvironments) {
    throw new ApiError(
      'TooManyEnvironments',
      `Service "${service.id}" has ${maxEnvironments} environments, delete one`,
    );
  }
  return { ...service, environments: [...service.environments, { name, imageTag, cluster, createdAt: now }] };
}

/** Removes an environment. Throws `EnvironmentNotFound`, and `BadRequest` for the default one. */
export function withoutEnvironment(service: Service, name: string): Service {
  const removed = environmentOf(service, name);
  if (name === defaultEnvironmentName) {
    throw new ApiError('BadRequest', `environment: The environment "${name}" cannot be deleted`);
  }
  return { ...service, environments: service.environments.filter((each) => each !== removed) };
}

/** Sets the tag or digest that an environment spawns. Throws `EnvironmentNotFound`. */
export function withImageTag(service: Service, environment: string, imageTag: string): Service {
  return changeEnvironment(service, environment, (current) => ({ ...current, imageTag }));
}

/** Records a spawn. Spawns may be recorded late and in any order; those of unknown environments are ignored. */
export function withSpawn(service: Service, environment: string, time: Date): Service {
  if (!service.environments.some(({ name }) => name === environment)) return service;
  const changed = changeEnvironment(service, environment, (current) => ({
    ...current,
    lastSpawnedAt: later(current.lastSpawnedAt, time),
  }));
  return { ...changed, lastSpawnedAt: later(service.lastSpawnedAt, time) };
}

/** Records that an image was pushed. */
export function withImage(service: Service, digest: string, uploadTime: Date): Service {
  return { ...service, lastImageDigest: digest, lastImageUploadTime: uploadTime };
}

/** Allows or forbids pulling a service's images without credentials. */
export function withVisibility(service: Service, isPublic: boolean): Service {
  return (service.public ?? false) === isPublic ? service : { ...service, public: isPublic };
}

function changeEnvironment(service: Service, name: string, change: (current: Environment) => Environment): Service {
  const current = environmentOf(service, name);
  return {
    ...service,
    environments: service.environments.map((each) => (each === current ? change(current) : each)),
  };
}

function later(known: Date | undefined, time: Date): Date {
  return known && known > time ? known : time;
}

export function noService(id: string): ApiError {
  return new ApiError('ServiceNotFound', `There is no service "${id}"`);
}
