/** The endpoints of the service API, as data: the API serves them, and `docs/openapi.json` is made from them. */
import { z } from 'zod';
import { accountEndpoints } from './account-endpoints.ts';
import {
  backendListItem,
  backendMetadata,
  metricsRecord,
  runningBackend,
  statusObject,
  terminateRequest,
  trafficObject,
} from './backend.ts';
import { connectRequest, connectResponse } from './connect.ts';
import { get, post } from './endpoint.ts';
import type { ServiceErrorCode } from './errors.ts';
import { nodeEndpoints } from './nodes.ts';
import { listOf, pageQuery } from './pages.ts';
import { serviceSettings, serviceSettingsChange } from './service-settings.ts';
import {
  createEnvironmentRequest,
  createServiceRequest,
  environmentObject,
  imageObject,
  serviceObject,
  updateRequest,
  uploadQuery,
  visibility,
} from './service.ts';

const anyTime = z.iso.datetime({ offset: true }).transform((text) => new Date(text));

const logsQuery = z.strictObject({
  follow: z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .meta({ description: 'Whether new lines follow the stored ones. Default: true' }),
});

const connectErrors: readonly ServiceErrorCode[] = [
  'TooManyRequests',
  'TooManyBackends',
  'ServiceNotFound',
  'ImageNotFound',
  'KeyNotHeld',
  'NoImage',
  'MountsDisabled',
];

const backendsQuery = pageQuery.extend({ start: anyTime.optional(), end: anyTime.optional() });

export const endpoints = {
  ...accountEndpoints,
  ...nodeEndpoints,
  connect: post('/v2/service/{account}/{service}/connect', {
    summary: 'Get a connection URL to the backend that holds a key, or to a new backend',
    access: 'connect',
    body: connectRequest,
    answer: connectResponse,
    errors: connectErrors,
  }),
  connectEnvironment: post('/v2/service/{account}/{service}/{environment}/connect', {
    summary: 'Connect with the defaults of an environment',
    access: 'connect',
    body: connectRequest,
    answer: connectResponse,
    errors: [...connectErrors, 'EnvironmentNotFound'],
  }),
  backendStatus: get('/v2/backend/{backend_id}/status', {
    summary: 'The current status of a backend',
    access: 'none',
    answer: statusObject,
    errors: ['BackendNotFound'],
  }),
  backendStatusStream: get('/v2/backend/{backend_id}/status/stream', {
    summary: 'The past statuses of a backend, then each new status until the backend has ended',
    access: 'none',
    answer: statusObject,
    stream: true,
    endsWith204: true,
    errors: ['BackendNotFound'],
  }),
  backend: get('/v2/backend/{backend_id}', {
    summary: 'A backend and its status history',
    access: 'read',
    answer: backendMetadata,
    errors: ['BackendNotFound'],
  }),
  backendLogs: get('/v2/backend/{backend_id}/logs/stream', {
    summary: 'The log of a backend: the stored lines, then each new line until the backend has ended',
    access: 'read',
    query: logsQuery,
    answer: z.string(),
    stream: true,
    errors: ['BackendNotFound', 'TooManyRequests'],
  }),
  backendMetrics: get('/v2/backend/{backend_id}/metrics/stream', {
    summary: 'The resource usage of a backend, every second until the backend has ended',
    access: 'read',
    answer: metricsRecord,
    stream: true,
    errors: ['BackendNotFound', 'TooManyRequests'],
  }),
  backendTraffic: get('/v2/backend/{backend_id}/traffic', {
    summary: 'The traffic of a backend so far, as counted by the proxies; at most a few seconds old',
    access: 'read',
    answer: trafficObject,
    errors: ['BackendNotFound'],
  }),
  terminate: post('/v2/backend/{backend_id}/terminate', {
    summary: 'Stop a backend',
    access: 'connect',
    body: terminateRequest,
    errors: ['BackendNotFound', 'BackendNotRunning'],
  }),
  serviceBackends: get('/v2/service/{account}/{service}/backends', {
    summary: 'Backends of a service, newest first',
    access: 'read',
    ...listOf({ backends: backendListItem }),
    query: backendsQuery,
    errors: ['ServiceNotFound'],
  }),
  accountBackends: get('/v2/account/{account}/backends', {
    summary: 'All running backends of an account, newest first',
    access: 'read',
    ...listOf({ running_backends: runningBackend }),
    errors: ['AccountNotFound'],
  }),
  createService: post('/v2/account/{account}/service', {
    summary: 'Create a service',
    access: 'manage',
    body: createServiceRequest,
    errors: ['AccountNotFound', 'ServiceExists'],
  }),
  listServices: get('/v2/account/{account}/services', {
    summary: 'Names of the services of an account',
    access: 'read',
    ...listOf({ services: z.string() }),
    errors: ['AccountNotFound'],
  }),
  service: get('/v2/service/{account}/{service}', {
    summary: 'A service',
    access: 'read',
    answer: serviceObject,
    errors: ['ServiceNotFound'],
  }),
  serviceImages: get('/v2/service/{account}/{service}/images', {
    summary: 'Images pushed for a service, newest first',
    access: 'read',
    ...listOf({ images: imageObject }),
    errors: ['ServiceNotFound'],
  }),
  uploadImage: post('/v2/service/{account}/{service}/images', {
    summary: 'Upload an image without Docker, as an archive of `docker save` or an OCI layout',
    access: 'push',
    query: uploadQuery,
    archive: 'request',
    status: 201,
    answer: imageObject,
    errors: ['ServiceNotFound', 'QuotaExceeded', 'ImagesElsewhere', 'InsufficientStorage'],
  }),
  imageArchive: get('/v2/service/{account}/{service}/images/{digest}/archive', {
    summary: 'Download an image as an archive, for `docker load`, podman and skopeo',
    access: 'read',
    archive: 'answer',
    answer: z.string(),
    errors: ['ServiceNotFound', 'ImageNotFound', 'ImagesElsewhere'],
  }),
  update: post('/v2/service/{account}/{service}/update', {
    summary: 'Set the image that new backends run by default',
    access: 'deploy',
    body: updateRequest,
    errors: ['ServiceNotFound', 'ImageNotFound'],
  }),
  updateEnvironment: post('/v2/service/{account}/{service}/{environment}/update', {
    summary: 'Set the image that new backends of an environment run by default',
    access: 'deploy',
    body: updateRequest,
    errors: ['ServiceNotFound', 'EnvironmentNotFound', 'ImageNotFound'],
  }),
  deleteService: post('/v2/service/{account}/{service}/delete', {
    summary: 'Delete a service: it accepts no connects from now on, its backends are stopped, and its images deleted',
    access: 'manage',
    errors: ['ServiceNotFound'],
  }),
  environments: get('/v2/service/{account}/{service}/environments', {
    summary: 'The environments of a service',
    access: 'read',
    answer: z.strictObject({ environments: z.array(environmentObject) }),
    errors: ['ServiceNotFound'],
  }),
  createEnvironment: post('/v2/service/{account}/{service}/environments', {
    summary: 'Create an environment of a service',
    access: 'manage',
    body: createEnvironmentRequest,
    errors: ['ServiceNotFound', 'EnvironmentExists', 'TooManyEnvironments', 'ImageNotFound'],
  }),
  deleteEnvironment: post('/v2/service/{account}/{service}/{environment}/delete', {
    summary: 'Delete an environment of a service; its backends keep running',
    access: 'manage',
    errors: ['ServiceNotFound', 'EnvironmentNotFound'],
  }),
  serviceSettings: get('/v2/service/{account}/{service}/settings', {
    summary: 'The settings of a service: the defaults of its backends, without the values of its secrets',
    access: 'read',
    answer: serviceSettings,
    errors: ['ServiceNotFound'],
  }),
  changeServiceSettings: post('/v2/service/{account}/{service}/settings', {
    summary: 'Change settings of a service, for backends that are spawned from now on',
    access: 'manage',
    body: serviceSettingsChange,
    errors: ['ServiceNotFound'],
  }),
  // Not a field of the service object, because existing clients compare that field by field.
  visibility: get('/v2/service/{account}/{service}/visibility', {
    summary: 'Whether the images of a service can be pulled without a login',
    access: 'read',
    answer: visibility,
    errors: ['ServiceNotFound'],
  }),
  setVisibility: post('/v2/service/{account}/{service}/visibility', {
    summary: 'Allow or forbid pulling the images of a service without a login',
    access: 'manage',
    body: visibility,
    errors: ['ServiceNotFound'],
  }),
};
