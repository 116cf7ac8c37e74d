/**
 * The endpoints of v1 and of the earliest form, as data. The paths of the earliest form have no prefix; a few endpoints exist there
 * only.
 */
import { z } from 'zod';
import type { Endpoint } from './endpoint.ts';
import { get, post, remove } from './endpoint.ts';
import type { ServiceErrorCode } from './errors.ts';
import { generations } from './generations.ts';
import { listOf } from './pages.ts';
import { authAnswer } from './people.ts';
import { createServiceRequest } from './service.ts';
import {
  earliestSpawnRequest,
  fetchRequest,
  spawnTokenRequest,
  spawnTokenResponse,
  tokenSpawnRequest,
  v1SpawnRequest,
  v1SpawnResponse,
  v1StatusObject,
} from './v1.ts';

const spawnErrors: readonly ServiceErrorCode[] = [
  'ServiceNotFound',
  'EnvironmentNotFound',
  'ImageNotFound',
  'NoImage',
  'TooManyRequests',
  'TooManyBackends',
];

/** The endpoints of both, apart from the path's prefix and the options of a spawn. */
const shared = {
  auth: get('/auth', {
    summary: 'Whether the access token is valid, and for which accounts',
    access: 'any',
    answer: authAnswer,
  }),
  createService: post('/user/{account}/service', {
    summary: 'Create a service',
    access: 'manage',
    body: createServiceRequest,
    errors: ['AccountNotFound', 'ServiceExists'],
  }),
  listServices: get('/user/{account}/services', {
    summary: 'Names of the services of an account',
    access: 'read',
    ...listOf({ services: z.string() }),
    errors: ['AccountNotFound'],
  }),
  fetch: post('/user/{account}/service/{service}/fetch', {
    summary: 'Get a connection URL to the backend that holds a lock',
    access: 'connect',
    body: fetchRequest,
    answer: v1SpawnResponse,
    errors: ['ServiceNotFound', 'KeyNotHeld', 'TooManyRequests'],
  }),
  backendStatus: get('/backend/{backend_name}/status', {
    summary: 'The current state of a backend',
    access: 'none',
    answer: v1StatusObject,
    errors: ['BackendNotFound'],
  }),
  readyPage: get('/backend/{backend_name}/ready', {
    summary:
      'A loading page that redirects to the backend; for backends that were spawned through v1 or the earliest form',
    access: 'none',
    page: true,
    answer: z.string(),
  }),
  terminate: post('/backend/{backend_name}/terminate', {
    summary: 'Stop a backend',
    access: 'connect',
    errors: ['BackendNotFound', 'BackendNotRunning'],
  }),
};

const statusStream = get('/backend/{backend_name}/status/stream', {
  summary: 'The past states of a backend, then each new state until the backend has ended',
  access: 'none',
  answer: v1StatusObject,
  stream: true,
  endsWith204: true,
  errors: ['BackendNotFound'],
});

const logs = get('/backend/{backend_name}/logs', {
  summary: 'The log of a backend: the stored lines, then each new line until the backend has ended',
  access: 'read',
  answer: z.string(),
  stream: true,
  errors: ['BackendNotFound', 'TooManyRequests'],
});

const spawn = post('/user/{account}/service/{service}/spawn', {
  summary: 'Get a connection URL to the backend that holds a lock, or to a new backend',
  access: 'connect',
  body: v1SpawnRequest,
  answer: v1SpawnResponse,
  errors: spawnErrors,
});

export const v1Endpoints = under(generations.v1.prefix, { ...shared, statusStream, logs, spawn });

export const earliestEndpoints = {
  ...shared,
  statusStream: { ...statusStream, mustAcceptStream: true },
  logs: { ...logs, mustAcceptStream: true },
  spawn: { ...spawn, body: earliestSpawnRequest },
  image: get('/user/{account}/service/{service}/image', {
    summary: 'The name with which to tag an image of a service before `docker push`',
    access: 'any',
    answer: z.strictObject({ imageName: z.string() }),
    errors: ['ServiceNotFound'],
  }),
  createSpawnToken: post('/user/{account}/service/{service}/token', {
    summary: 'Create a spawn token, with which any client can spawn backends of the service',
    access: 'manage',
    body: spawnTokenRequest,
    answer: spawnTokenResponse,
    errors: ['ServiceNotFound', 'EnvironmentNotFound'],
  }),
  tokenSpawn: post('/token/{token}/spawn', {
    summary: 'Get a connection URL to a new backend, with a spawn token',
    access: 'spawn-token',
    body: tokenSpawnRequest,
    answer: v1SpawnResponse,
    errors: ['SpawnTokenNotFound', ...spawnErrors],
  }),
  revokeSpawnToken: remove('/token/{token}', {
    summary: 'Revoke a spawn token',
    access: 'manage',
    errors: ['SpawnTokenNotFound'],
  }),
};

/** The same endpoints with a prefix before their paths. Their types contain only the parameters, and a prefix has none. */
function under<Endpoints extends Readonly<Record<string, Endpoint>>>(prefix: string, endpoints: Endpoints): Endpoints {
  const prefixed = Object.entries(endpoints).map(([name, each]) => [name, { ...each, path: `${prefix}${each.path}` }]);
  return Object.fromEntries(prefixed) as Endpoints;
}
