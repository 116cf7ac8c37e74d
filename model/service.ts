/** Services and their environments. */
import { defaultEnvironmentName } from '../contract/names.ts';
import type { Collection } from '../core/store/store.ts';
import { ApiError } from './api-error.ts';

/** A named default for spawns of a service. */
export interface Environment {
  readonly name: string;
  /** A tag or digest; `latest` where nothing else was set. */
  readonly imageTag: string;
  readonly cluster: string;
  readonly createdAt: Date;
  readonly lastSpawnedAt?: Date;
}

/** A thing that can be spawned. Its ID is `<account>/<name>`, which is its image repository too. */
export interface Service {
  readonly id: string;
  readonly account: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly environments: readonly Environment[];
  readonly lastImageDigest?: string;
  readonly lastImageUploadTime?: Date;
  readonly lastSpawnedAt?: Date;
  /** Whether anybody may pull its images. Absent: no. */
  readonly public?: boolean;
}

export const services: Collection<Service, 'byAccount'> = {
  name: 'services',
  indexes: { byAccount: ['account', 'name'] },
};

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

/** Throws `EnvironmentNotFound`. */
export function environmentOf(service: Service, name: string = defaultEnvironmentName): Environment {
  const found = service.environments.find((environment) => environment.name === name);
  if (!found) throw new ApiError('EnvironmentNotFound', `Service "${service.id}" has no environment "${name}"`);
  return found;
}

/** Sets the tag or digest that an environment spawns. Throws `EnvironmentNotFound`. */
export function withImageTag(service: Service, environment: string, imageTag: string): Service {
  return changeEnvironment(service, environment, (current) => ({ ...current, imageTag }));
}

/** Notes that a backend was spawned. Notes may come late and in any order; a service forgets those it has no environment for. */
export function withSpawn(service: Service, environment: string, time: Date): Service {
  if (!service.environments.some(({ name }) => name === environment)) return service;
  const changed = changeEnvironment(service, environment, (current) => ({
    ...current,
    lastSpawnedAt: later(current.lastSpawnedAt, time),
  }));
  return { ...changed, lastSpawnedAt: later(service.lastSpawnedAt, time) };
}

/** Notes that an image was pushed. */
export function withImage(service: Service, digest: string, uploadTime: Date): Service {
  return { ...service, lastImageDigest: digest, lastImageUploadTime: uploadTime };
}

/** Lets anybody pull a service's images, or only its account. */
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
