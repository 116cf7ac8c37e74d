/** Converts documents to the answers of v2, field by field. */
import type {
  BackendListItem,
  BackendMetadata,
  RunningBackend,
  StatusEntryObject,
  StatusObject,
  TrafficObject,
} from '../contract/backend.ts';
import type { ConnectResponse } from '../contract/connect.ts';
import type { EnvironmentObject, ImageObject, ServiceObject } from '../contract/service.ts';
import type { Backend, StatusEntry } from '../model/backend.ts';
import type { Image } from '../model/image.ts';
import { isStartFailure, whyNotStarted } from '../model/start-failure.ts';
import type { Environment, Service } from '../model/service.ts';
import type { TrafficSum } from '../model/traffic.ts';
import type { Api, PublicUrls } from './dependencies.ts';
import type { Connection } from './connect/spawn.ts';
import { connectionUrl, readyUrl } from './session-url.ts';

export function presentConnection(api: Api, { backend, address, spawned }: Connection): ConnectResponse {
  const { token } = address;
  return {
    backend_id: backend.id,
    url: connectionUrl(api.urls, address),
    token,
    secret_token: api.secretFor(token),
    ready_url: readyUrl(api.urls, backend.id, address),
    status_url: `${api.urls.api}/v2/backend/${backend.id}/status`,
    status: backend.status,
    spawned,
    ...bearerTokenField(api, backend),
  };
}

/** The bearer token that each request to a backend needs, if it needs one. It is derived, and stored as a hash only. */
export function bearerTokenField({ bearerFor }: Api, { id, bearerHash }: Backend): { bearer_token?: string } {
  return bearerHash === undefined ? {} : { bearer_token: bearerFor(id) };
}

/** The status object of an entry of a status history. */
export function presentStatus(entry: StatusEntry): StatusObject {
  return {
    status: entry.status,
    time: entry.time.toISOString(),
    ...(entry.terminationKind !== undefined && { termination_kind: entry.terminationKind }),
    ...(entry.terminationReason !== undefined && { termination_reason: entry.terminationReason }),
    ...(entry.status === 'terminated' && { exit_error: entry.exitCode !== null && entry.exitCode !== 0 }),
    ...problemField(entry),
  };
}

function problemField(entry: StatusEntry): { problem?: string } {
  if (entry.failure !== undefined) return { problem: entry.failure };
  return isStartFailure(entry) ? { problem: whyNotStarted(entry) } : {};
}

export function presentCurrentStatus(backend: Backend): StatusObject {
  const last = backend.history.at(-1);
  if (!last) throw new Error('A backend without a history');
  return { ...presentStatus(last), ...startProblemField(backend) };
}

/** Why the container of a backend that waits does not answer yet. */
function startProblemField({ status, startProblem }: Backend): { problem?: string } {
  return status === 'waiting' && startProblem !== undefined ? { problem: `The container ${startProblem}` } : {};
}

function presentEntry(entry: StatusEntry): StatusEntryObject {
  const reason = entry.terminationReason;
  return {
    status: entry.status,
    time: entry.time.toISOString(),
    ...(entry.lastStatus !== undefined && { last_status: entry.lastStatus }),
    ...(entry.terminationKind !== undefined && { termination_kind: entry.terminationKind }),
    ...(reason !== undefined && { termination_reason: reason }),
    ...(reason !== undefined && entry.status === 'terminated' && { terminatation_reason: reason }),
    ...(entry.exitCode !== undefined && { exit_code: entry.exitCode }),
    ...problemField(entry),
  };
}

export function presentBackend(backend: Backend): BackendMetadata {
  const entries = backend.history.map(presentEntry);
  const last = entries.pop();
  return {
    ...commonFields(backend),
    max_mem_bytes: backend.peakMemoryBytes ?? 0,
    statuses: last ? [...entries, { ...last, ...startProblemField(backend) }] : entries,
  };
}

export function presentListItem(backend: Backend): BackendListItem {
  return {
    ...commonFields(backend),
    max_mem_bytes: backend.peakMemoryBytes ?? 0,
    ready_timestamp: backend.readyAt?.toISOString() ?? null,
    status: presentCurrentStatus(backend),
  };
}

export function presentRunning(backend: Backend): RunningBackend {
  return { ...commonFields(backend), status: presentCurrentStatus(backend) };
}

export function presentTraffic(backend: string, sum: TrafficSum): TrafficObject {
  return {
    backend_id: backend,
    requests: sum.requests,
    bytes_in: sum.receivedBytes,
    bytes_out: sum.sentBytes,
    open_connections: sum.openConnections,
    counted_at: sum.writtenAt?.toISOString() ?? null,
  };
}

function commonFields(backend: Backend) {
  return {
    account_name: backend.account,
    cluster_name: backend.cluster,
    created_at: backend.createdAt.toISOString(),
    environment_name: backend.environment,
    id: backend.id,
    image_digest: backend.imageDigest,
    key: backend.key ?? null,
    service_name: backend.service,
  };
}

export function presentService(urls: PublicUrls, service: Service): ServiceObject {
  return {
    account_name: service.account,
    created_at: service.createdAt.toISOString(),
    environments: service.environments.map(presentEnvironment),
    image_name: imageName(urls, service),
    last_image_digest: service.lastImageDigest ?? null,
    last_image_upload_time: service.lastImageUploadTime?.toISOString() ?? null,
    last_spawned_at: service.lastSpawnedAt?.toISOString() ?? null,
    name: service.name,
  };
}

/** The name with which to tag an image of a service before `docker push`. */
export function imageName({ registryHost }: PublicUrls, { id }: Pick<Service, 'id'>): string {
  return `${registryHost}/${id}`;
}

export function presentEnvironment(environment: Environment): EnvironmentObject {
  return {
    cluster: environment.cluster,
    created_at: environment.createdAt.toISOString(),
    image_tag: environment.imageTag,
    last_spawned_at: environment.lastSpawnedAt?.toISOString() ?? null,
    name: environment.name,
  };
}

export function presentImage(image: Image): ImageObject {
  const commit = image.gitCommit;
  return {
    digest: image.digest,
    ...(commit && {
      git_commit: {
        ...(commit.branch !== undefined && { branch: commit.branch }),
        ...(commit.hash !== undefined && { hash: commit.hash }),
        ...(commit.message !== undefined && { message: commit.message }),
        ...(commit.repository !== undefined && { repository: commit.repository }),
      },
    }),
    repository: image.repository,
    tag: image.tag,
    upload_time: image.uploadTime.toISOString(),
  };
}
