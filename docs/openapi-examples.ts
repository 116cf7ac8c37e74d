/** Examples for the OpenAPI document, made of one value for each field. */
import type { OpenApiDocument, Schema, Schemas } from './openapi-document.ts';

const digest = 'sha256:9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0';
const time = '2026-11-21T09:30:00.000Z';
const later = '2026-11-22T09:30:00.000Z';
const connectionToken = 'WZBkYf0Cu0x8hQqN3Pz1mJrT5vLd7sGa9eKoIiUy2Xw';

const logLine = 'Listening on port 8080';

/** The value of a field of any schema, or of one schema (`Schema.field`). `undefined` leaves an optional field out. */
const values: Readonly<Record<string, unknown>> = {
  account_name: 'acme',
  added_at: time,
  address: '203.0.113.7',
  auth: { role: 'editor' },
  backend_count: 2,
  backend_id: 'tb7rq03gf7onfh5j9q',
  bearer_token: undefined,
  before: time,
  branch: 'main',
  cluster: 'main',
  cluster_name: 'main',
  cpu_period: 100_000,
  cpu_period_percent: 50,
  cpu_time_limit: undefined,
  cpu_used: 12_500_000,
  created_at: time,
  current_password: 'correct horse battery staple',
  details: { account: 'acme', service: 'draw' },
  digest,
  disabled: false,
  dry_run: true,
  end: later,
  env: { LOG_LEVEL: 'debug' },
  environment: 'default',
  environment_name: 'default',
  executable: undefined,
  exit_code: undefined,
  exit_error: undefined,
  expires_at: later,
  expires_in_seconds: 86_400,
  grace_period_seconds: 300,
  hard: false,
  has_password: true,
  hash: '2f1c5c3a8b1e4a7d9c6e0f8a7b5d4c3e2f1a0b9c',
  hint: 'berth_pat_TOu4',
  id: 'tb7rq03gf7onfh5j9q',
  id_token: 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyZXBvOmFjbWUvZHJhdyJ9.c2lnbmF0dXJl',
  image: undefined,
  image_digest: digest,
  image_name: 'registry.example/acme/draw',
  image_tag: 'latest',
  imageName: 'registry.example/acme/draw',
  alive: true,
  drained_at: null,
  engine_version: '28.5.2',
  node: 'machine-2',
  started_at: time,
  is_admin: false,
  is_complete: true,
  key: 'room-1',
  issuer: 'https://token.actions.githubusercontent.com',
  kind: 'access',
  last_image_digest: digest,
  last_image_upload_time: time,
  last_spawned_at: time,
  last_status: undefined,
  last_used_at: time,
  lifetime_limit_seconds: undefined,
  lock: 'room-1',
  max_idle_seconds: 300,
  max_mem_bytes: 52_428_800,
  mem_available: 484_442_112,
  mem_limit: 536_870_912,
  mem_used: 52_428_800,
  memory_limit_bytes: 536_870_912,
  message: 'Draw straight lines',
  mount: undefined,
  name: 'draw',
  new_password: 'four words are a password',
  next_cursor: undefined,
  owner_email: 'ada@acme.example',
  password: 'correct horse battery staple',
  port: 8080,
  problem: undefined,
  public: true,
  ready_timestamp: time,
  ready_url: `https://berth.example/ready/tb7rq03gf7onfh5j9q/${connectionToken}/`,
  repository: 'acme/draw',
  request_id: 'f3b1a6de-5a0f-4c1c-9a53-0d9f2f6c1b7e',
  require_bearer_token: undefined,
  revoked_at: null,
  role: 'member',
  scopes: ['read', 'connect'],
  secret_token: 'n5tVq8yXw2Zb4Ee6Hh9Kk1Mm3Pp5Ss7Uu0Ww2Yy4Aa6',
  secrets: undefined,
  service: 'draw',
  service_environment: undefined,
  service_name: 'draw',
  services: ['draw'],
  spawn: { max_idle_seconds: 300 },
  spawned: true,
  start: time,
  state: 'Ready',
  status_url: 'https://berth.example/v2/backend/tb7rq03gf7onfh5j9q/status',
  sys_cpu: 8_000_000_000,
  tag: 'latest',
  token_id: '01jd7k3v5n',
  terminatation_reason: undefined,
  terminated_count: 0,
  termination_kind: undefined,
  termination_reason: undefined,
  time,
  token: connectionToken,
  upload_time: time,
  url: `https://sessions.example/${connectionToken}/`,
  user: 'ada',
  user_email: 'ada@acme.example',
  user_id: '01jd7k3v5n',
  user_is_admin: false,
  uuid: 'f3b1a6de-5a0f-4c1c-9a53-0d9f2f6c1b7e',
  'Account.name': 'acme',
  'Auth.accounts': ['acme'],
  'BackendStatus.status': 'ready',
  'CliLogin.token': 'q3V8zT1nY6wL0sKf',
  'CliSession.token': 'acme.berth_pat_TOu4zyw4SGzNjUTHC6vUWaFkQbnV6xP7KCXy5dJg5VKA3yTZp',
  'Node.name': 'machine-2',
  'ConnectResponse.status': 'scheduled',
  'CreateAccountRequest.name': 'acme',
  'CreateEnvironmentRequest.name': 'staging',
  'CreatedAccessToken.id': '01jd7k3v5n',
  'CreatedAccessToken.token': 'berth_pat_TOu4zyw4SGzNjUTHC6vUWaFkQbnV6xP7KCXy5dJg5VKA3yTZp',
  'AccessToken.id': '01jd7k3v5n',
  'Environment.name': 'default',
  'Image.repository': 'acme/draw',
  'Invitation.url': 'https://berth.example/invitation#7Hd2Kq9s',
  'InvitationRequest.code': '7Hd2Kq9s',
  'ServiceSettings.secrets': ['API_KEY'],
  'ServiceSettingsChange.secrets': { API_KEY: 'a secret' },
  'LogIn.kind': 'browser',
  'LogIn.program': 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  'Session.accounts': ['acme'],
  'SetUpRequest.code': '7Hd2Kq9s',
  'StatusEntry.status': 'ready',
  'AuditRecord.status': 200,
  'DeployToken.token': 'berth_dep_TOu4zyw4SGzNjUTHC6vUWaFkQbnV6xP7KCXy5dJg5VKA3yTZp',
  'DeployToken.scopes': ['push', 'deploy'],
  'TrustRule.id': '01jd7k3v5n',
  'TrustRule.environment': null,
  'TrustRule.scopes': ['push', 'deploy'],
  'TrustRuleRequest.environment': undefined,
  'TrustRuleRequest.scopes': ['push', 'deploy'],
  'TrustRule.repository': 'acme/draw',
  'V1SpawnResponse.name': 'tb7rq03gf7onfh5j9q',
  'V1SpawnResponse.status': 'Loading',
};

/** The example of a schema: of an object, all required fields and those optional fields that have a value. */
export function exampleOf(schema: Schema, schemas: Schemas, name = ''): unknown {
  if (schema.$ref !== undefined) {
    const target = schema.$ref.replace('#/components/schemas/', '');
    return exampleOf(schemas[target] ?? {}, schemas, target);
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.examples) return schema.examples[0];
  if (schema.enum) return schema.enum[0];
  const [choice] = schema.anyOf ?? schema.oneOf ?? [];
  if (choice) return exampleOf(choice, schemas);
  if (schema.type === 'array') return [exampleOf(schema.items ?? {}, schemas)];
  if (schema.type === 'object') return exampleObject(schema, schemas, name);
  if (schema.type === 'boolean') return true;
  if (schema.type === 'integer') return Math.max(1, schema.minimum ?? 1);
  return undefined;
}

function exampleObject({ properties = {}, required = [] }: Schema, schemas: Schemas, name: string) {
  const fields = Object.entries(properties).flatMap(([field, schema]) => {
    const key = [`${name}.${field}`, field].find((each) => Object.hasOwn(values, each));
    const hasOwnExample = schema.examples !== undefined || schema.const !== undefined;
    const value = key === undefined || hasOwnExample ? exampleOf(schema, schemas) : values[key];
    return value === undefined && !required.includes(field) ? [] : [[field, value] as const];
  });
  return Object.fromEntries(fields);
}

/** Adds an example to each parameter, to each body in JSON, and to each event. Errors have their own. */
export function addExamples({ components: { schemas }, paths }: OpenApiDocument): void {
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const parameter of operation.parameters ?? []) {
      const value = values[parameter.name];
      if (value !== undefined) parameter.example = value;
    }
    const responses = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
    const contents = [operation.requestBody?.content, ...responses.map(([, { content }]) => content)];
    for (const { 'application/json': json, 'text/event-stream': event } of contents.map((content) => content ?? {})) {
      const body = json ?? event;
      const example = body?.schema?.type === 'string' ? logLine : body?.schema && exampleOf(body.schema, schemas);
      if (body && example !== undefined) body.example = example;
    }
  }
}
