/** What clients of the earlier service rely on: each path, field and state of the API document, copied from its tables. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

/** The column "Auth" of the tables in section 4. */
type Auth = 'token' | 'open';

type Row = readonly [method: string, path: string, auth: Auth, answer: 'JSON' | 'events' | 'page'];

/** Section 4.1, and the paths of environments. */
const v2: readonly Row[] = [
  ['POST', '/v2/service/{account}/{service}/connect', 'token', 'JSON'],
  ['POST', '/v2/service/{account}/{service}/{environment}/connect', 'token', 'JSON'],
  ['GET', '/v2/backend/{backend_id}/status', 'open', 'JSON'],
  ['GET', '/v2/backend/{backend_id}/status/stream', 'open', 'events'],
  ['GET', '/v2/backend/{backend_id}', 'token', 'JSON'],
  ['GET', '/v2/service/{account}/{service}/backends', 'token', 'JSON'],
  ['GET', '/v2/account/{account}/backends', 'token', 'JSON'],
  ['POST', '/v2/backend/{backend_id}/terminate', 'token', 'JSON'],
  ['GET', '/v2/backend/{backend_id}/logs/stream', 'token', 'events'],
  ['GET', '/v2/backend/{backend_id}/metrics/stream', 'token', 'events'],
  ['POST', '/v2/account/{account}/service', 'token', 'JSON'],
  ['GET', '/v2/account/{account}/services', 'token', 'JSON'],
  ['GET', '/v2/service/{account}/{service}', 'token', 'JSON'],
  ['POST', '/v2/service/{account}/{service}/delete', 'token', 'JSON'],
  ['GET', '/v2/service/{account}/{service}/images', 'token', 'JSON'],
  ['POST', '/v2/service/{account}/{service}/update', 'token', 'JSON'],
  ['POST', '/v2/service/{account}/{service}/{environment}/update', 'token', 'JSON'],
];

/** Section 4.2: under `/v1`, and without a prefix in the earliest form. */
const older: readonly Row[] = [
  ['GET', '/auth', 'token', 'JSON'],
  ['POST', '/user/{account}/service', 'token', 'JSON'],
  ['GET', '/user/{account}/services', 'token', 'JSON'],
  ['POST', '/user/{account}/service/{service}/spawn', 'token', 'JSON'],
  ['POST', '/user/{account}/service/{service}/fetch', 'token', 'JSON'],
  ['GET', '/backend/{backend_name}/logs', 'token', 'events'],
  ['GET', '/backend/{backend_name}/status/stream', 'open', 'events'],
  ['GET', '/backend/{backend_name}/status', 'open', 'JSON'],
  ['GET', '/backend/{backend_name}/ready', 'open', 'page'],
  ['POST', '/backend/{backend_name}/terminate', 'token', 'JSON'],
];

/** Section 4.3, and what existing command lines call beside the document. */
const further: readonly Row[] = [
  ['GET', '/user/{account}/service/{service}/image', 'token', 'JSON'],
  ['POST', '/user/{account}/service/{service}/token', 'token', 'JSON'],
  ['POST', '/token/{token}/spawn', 'open', 'JSON'],
  ['DELETE', '/token/{token}', 'token', 'JSON'],
  ['GET', '/service/{account}/{service}/image-name', 'token', 'JSON'],
  ['POST', '/service/{account}/{service}/terminate-backends', 'token', 'JSON'],
  ['POST', '/cli-login', 'open', 'JSON'],
  ['GET', '/cli-login/{token}/status/stream', 'open', 'events'],
  ['POST', '/cli-login/{token}/complete', 'open', 'JSON'],
  ['POST', '/user-session/{uuid}/delete', 'token', 'JSON'],
];

/** Section 2. */
const fields = {
  ConnectRequest: ['key', 'user', 'auth', 'spawn'],
  SpawnConfig: ['tag', 'cluster', 'lifetime_limit_seconds', 'max_idle_seconds', 'executable'],
  ExecutableConfig: ['mount', 'env', 'resource_limits'],
  ResourceLimits: ['memory_limit_bytes', 'cpu_period_percent', 'cpu_period', 'cpu_time_limit'],
  ConnectResponse: ['backend_id', 'url', 'token', 'secret_token', 'ready_url', 'status_url', 'status', 'spawned'],
  BackendStatus: ['status', 'time', 'termination_kind', 'termination_reason', 'exit_error'],
  Backend: [
    ...['account_name', 'cluster_name', 'created_at', 'environment_name', 'id', 'image_digest', 'key'],
    ...['max_mem_bytes', 'service_name', 'statuses'],
  ],
  StatusEntry: [
    ...['time', 'status', 'last_status', 'termination_reason', 'terminatation_reason'],
    ...['termination_kind', 'exit_code'],
  ],
  BackendListItem: [
    ...['account_name', 'cluster_name', 'created_at', 'environment_name', 'id', 'image_digest', 'key'],
    ...['max_mem_bytes', 'service_name', 'ready_timestamp', 'status'],
  ],
  RunningBackend: [
    ...['account_name', 'cluster_name', 'created_at', 'environment_name', 'id', 'image_digest', 'key'],
    ...['service_name', 'status'],
  ],
  Metrics: ['backend_id', 'cpu_used', 'mem_available', 'mem_limit', 'mem_used', 'sys_cpu'],
  Service: [
    ...['account_name', 'created_at', 'environments', 'image_name', 'last_image_digest', 'last_image_upload_time'],
    ...['last_spawned_at', 'name'],
  ],
  Environment: ['cluster', 'created_at', 'image_tag', 'last_spawned_at', 'name'],
  Image: ['digest', 'git_commit', 'repository', 'tag', 'upload_time'],
  V1SpawnRequest: ['tag', 'grace_period_seconds', 'lock', 'env'],
  V1SpawnResponse: ['name', 'url', 'ready_url', 'status_url', 'status', 'spawned', 'bearer_token'],
  V1Status: ['state', 'time'],
  EarliestSpawnRequest: ['tag', 'grace_period_seconds', 'lock', 'env', 'port', 'require_bearer_token'],
  SpawnTokenRequest: ['tag', 'grace_period_seconds', 'lock', 'env', 'port', 'require_bearer_token'],
  TokenSpawnRequest: ['env'],
  FetchRequest: ['lock'],
};

/** Section 3. */
const states = {
  BackendStatusName: [
    ...['scheduled', 'loading', 'starting', 'waiting', 'ready'],
    ...['terminating', 'hard-terminating', 'terminated'],
  ],
  TerminationKind: ['soft', 'hard'],
  TerminationReason: ['swept', 'external', 'startuptimeout', 'keyexpired', 'lost'],
  V1State: [
    ...['Loading', 'Starting', 'Ready', 'Swept', 'Exited', 'ErrorLoading', 'ErrorStarting'],
    ...['TimedOutBeforeReady', 'Failed', 'Terminated', 'Lost'],
  ],
};

const read = (name: string) => readFileSync(join(import.meta.dirname, name), 'utf8');
const schemas: Readonly<Record<string, { properties?: object; enum?: string[] }>> = JSON.parse(read('openapi.json'))
  .components.schemas;

/** The rows of `docs/api.md`, as the tables above have them. */
const documented = Array.from(
  read('api.md').matchAll(/^\| (GET|POST|DELETE) \| `(\S+)` \| (.*?) \| (\w+) \|/gm),
  ([, method, path, access = '', answer]) => [method, path, access.startsWith('none') ? 'open' : 'token', answer],
);

describe('docs/api.md has a row for each endpoint of the API document', () => {
  const under = (prefix: string) => older.map(([method, path, ...rest]) => [method, prefix + path, ...rest]);
  test.each([...v2, ...under('/v1'), ...under(''), ...further])('%s %s', (...row) => {
    expect(documented).toContainEqual(row);
  });
});

describe('docs/openapi.json has each field of the API document', () => {
  test.each(Object.entries(fields))('%s', (name, names) => {
    expect(Object.keys(schemas[name]?.properties ?? {})).toEqual(expect.arrayContaining(names));
  });
});

test.each(Object.entries(states))('%s has exactly the values of the API document', (name, values) => {
  expect(schemas[name]?.enum).toEqual(values);
});
