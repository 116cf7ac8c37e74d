/** The endpoints of the service API, as data: the API serves them, and `docs/openapi.json` is made from them. */
import { z } from 'zod';
import type { ZodType } from 'zod';
import {
  backendListItem,
  backendMetadata,
  metricsRecord,
  runningBackend,
  statusObject,
  terminateRequest,
} from './backend.ts';
import { connectRequest, connectResponse } from './connect.ts';
import type { ServiceErrorCode } from './errors.ts';
import { pageFields, pageQuery } from './pages.ts';
import { createServiceRequest, imageObject, serviceObject, updateRequest, uploadQuery, visibility } from './service.ts';

/** The right that an access token needs. `none`: no token is needed, and every origin may read the answer. */
export type EndpointAccess = 'none' | 'read' | 'push' | 'connect' | 'manage';

/** One endpoint. Path parameters are written `{name}`. */
export interface Endpoint<Path extends string = string, Body = unknown, Query = unknown> {
  readonly method: 'GET' | 'POST';
  readonly path: Path;
  readonly summary: string;
  readonly access: EndpointAccess;
  /** If every field is optional, an empty or missing body is accepted, too. */
  readonly body: ZodType<Body>;
  readonly query: ZodType<Query>;
  /** The body of a successful answer; for a stream, each of its events. */
  readonly answer: ZodType;
  readonly stream: boolean;
  /** Whether the request or the answer is an image archive instead of JSON. */
  readonly archive: 'none' | 'request' | 'answer';
  /** The status of a successful answer. */
  readonly status: 200 | 201;
  readonly errors: readonly ServiceErrorCode[];
}

const noFields = z.strictObject({});
const ok = z.strictObject({ status: z.literal('ok') }).meta({ id: 'Ok' });
const anyTime = z.iso.datetime({ offset: true }).transform((text) => new Date(text));

type NoFields = z.infer<typeof noFields>;

type EndpointDetails<Body, Query> = Partial<
  Pick<Endpoint<string, Body, Query>, 'body' | 'query' | 'stream' | 'archive' | 'status'>
> &
  Pick<Endpoint, 'summary' | 'access' | 'answer' | 'errors'>;

function get<const Path extends string, Query = NoFields>(
  path: Path,
  details: EndpointDetails<NoFields, Query>,
): Endpoint<Path, NoFields, Query> {
  return {
    method: 'GET',
    path,
    body: noFields,
    query: noFields as unknown as ZodType<Query>,
    stream: false,
    archive: 'none',
    status: 200,
    ...details,
  };
}

function post<const Path extends string, Body = NoFields, Query = NoFields>(
  path: Path,
  details: EndpointDetails<Body, Query>,
): Endpoint<Path, Body, Query> {
  return {
    method: 'POST',
    path,
    body: noFields as unknown as ZodType<Body>,
    query: noFields as unknown as ZodType<Query>,
    stream: false,
    archive: 'none',
    status: 200,
    ...details,
  };
}

const backendsQuery = pageQuery.extend({ start: anyTime.optional(), end: anyTime.optional() });

export const endpoints = {
  connect: post('/v2/service/{account}/{service}/connect', {
    summary: 'Get a connection URL to the backend that holds a key, or to a new backend',
    access: 'connect',
    body: connectRequest,
    answer: connectResponse,
    errors: ['ServiceNotFound', 'ImageNotFound', 'KeyNotHeld', 'NoImage', 'MountsDisabled'],
  }),
  connectEnvironment: post('/v2/service/{account}/{service}/{environment}/connect', {
    summary: 'Connect with the defaults of an environment',
    access: 'connect',
    body: connectRequest,
    answer: connectResponse,
    errors: ['ServiceNotFound', 'EnvironmentNotFound', 'ImageNotFound', 'KeyNotHeld', 'NoImage', 'MountsDisabled'],
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
  terminate: post('/v2/backend/{backend_id}/terminate', {
    summary: 'Stop a backend',
    access: 'connect',
    body: terminateRequest,
    answer: ok,
    errors: ['BackendNotFound', 'BackendNotRunning'],
  }),
  serviceBackends: get('/v2/service/{account}/{service}/backends', {
    summary: 'Backends of a service, newest first',
    access: 'read',
    query: backendsQuery,
    answer: z.strictObject({ backends: z.array(backendListItem), ...pageFields }),
    errors: ['ServiceNotFound', 'BadRequest'],
  }),
  accountBackends: get('/v2/account/{account}/backends', {
    summary: 'All running backends of an account, newest first',
    access: 'read',
    query: pageQuery,
    answer: z.strictObject({ running_backends: z.array(runningBackend), ...pageFields }),
    errors: ['AccountNotFound', 'BadRequest'],
  }),
  createService: post('/v2/account/{account}/service', {
    summary: 'Create a service',
    access: 'manage',
    body: createServiceRequest,
    answer: ok,
    errors: ['AccountNotFound', 'ServiceExists'],
  }),
  listServices: get('/v2/account/{account}/services', {
    summary: 'Names of the services of an account',
    access: 'read',
    query: pageQuery,
    answer: z.strictObject({ services: z.array(z.string()), ...pageFields }),
    errors: ['AccountNotFound', 'BadRequest'],
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
    query: pageQuery,
    answer: z.strictObject({ images: z.array(imageObject), ...pageFields }),
    errors: ['ServiceNotFound', 'BadRequest'],
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
    access: 'push',
    body: updateRequest,
    answer: ok,
    errors: ['ServiceNotFound', 'ImageNotFound'],
  }),
  updateEnvironment: post('/v2/service/{account}/{service}/{environment}/update', {
    summary: 'Set the image that new backends of an environment run by default',
    access: 'push',
    body: updateRequest,
    answer: ok,
    errors: ['ServiceNotFound', 'EnvironmentNotFound', 'ImageNotFound'],
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
    answer: ok,
    errors: ['ServiceNotFound'],
  }),
};

/** The parameters in an endpoint's path. */
export type PathParameters<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [K in Name]: string } & PathParameters<Rest>
  : unknown;
