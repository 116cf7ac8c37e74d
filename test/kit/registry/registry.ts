/** A registry with its own listener and real drivers, and functions that send requests to it. */
import { request as httpRequest } from 'node:http';
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Bus } from '../../../core/bus/bus.ts';
import { openInProcessBus } from '../../../core/bus/in-process.ts';
import { systemClock } from '../../../core/clock/system-clock.ts';
import type { Clock } from '../../../core/clock/clock.ts';
import type { HashThreads } from '../../../core/hash/hash-threads.ts';
import { listen, newServer } from '../../../core/http/listener.ts';
import { openLog } from '../../../core/log/log.ts';
import { openMetrics } from '../../../core/metrics/metrics.ts';
import { PlatformSecret } from '../../../core/secret/platform-secret.ts';
import type { Store } from '../../../core/store/store.ts';
import { accessTokenDocument, accessTokens, newSecret } from '../../../model/access-token.ts';
import type { Scope } from '../../../contract/scopes.ts';
import { accounts } from '../../../model/account.ts';
import { RegistryGrants } from '../../../model/registry-grant.ts';
import { TokenChecks } from '../../../model/token-checks.ts';
import { openRegistry } from '../../../registry/index.ts';
import type { GcSettings, Registry, RegistryLimits } from '../../../registry/index.ts';
import { defaultGcSettings } from '../../../registry/testing/gc-settings.ts';
import type { TestDrivers } from '../servers/drivers.ts';
import { steered } from '../ports/steered.ts';
import { sha256 } from './digests.ts';
import { hashing as sharedHashing } from './hashing.ts';
import { openRegistryPorts } from './registry-ports.ts';

export { sha256, sha512 } from './digests.ts';

export interface Sent {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | string | Readable;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The code of the first OCI error in the body. */
  readonly code: string | undefined;
}

export type TestRegistry = Awaited<ReturnType<typeof openTestRegistry>>;

export interface TestRegistryOptions {
  /** Default: `embedded`. On the shared drivers there are two registries, which receive requests alternately. */
  readonly drivers?: TestDrivers;
  /** Also the store's clock. */
  readonly clock?: Clock;
  /** The clock of token checks, which run twice a second. Default: the system clock, because tests advance `clock` by days. */
  readonly tokenClock?: Clock;
  /** Default: threads that all registries of the process share, because starting one takes 30 ms of a core. */
  readonly hashing?: HashThreads;
  readonly gc?: Partial<GcSettings>;
  readonly publicUrl?: string;
  readonly limits?: Partial<RegistryLimits>;
  readonly behindLoadBalancer?: boolean;
  readonly bus?: Bus;
  /** The database to use instead of SQLite and files. */
  readonly mongo?: { readonly url: string; readonly database: string } | undefined;
  /** Runs before each write to the store or the blobs, which fails with its error. */
  readonly beforeWrite?: (method: string, collection: string | undefined) => void;
  /** Runs before each call of the store or the blobs, which waits for it. */
  readonly beforeCall?: (method: string) => Promise<void>;
}

export const noLimits: RegistryLimits = {
  accountBytes: 0,
  blobBytes: 0,
  openUploads: 0,
  requestsPerSecond: 0,
  failedLoginsPerMinute: 0,
};

/** Opens a registry in which the accounts `acme` and `other` exist. */
export async function openTestRegistry(options: TestRegistryOptions = {}) {
  await using resources = new AsyncDisposableStack();
  const logLines: string[] = [];
  const log = openLog('info', { write: (line) => void logLines.push(line) });
  const { clock = systemClock, publicUrl, beforeCall } = options;
  const { hashing = sharedHashing } = options;
  const ports = await openRegistryPorts(options, { log, clock, hashing }, resources);
  const [first] = ports;
  const { blobs, folder } = first;
  const inTime = (store: Store) => (options.clock ? steered(store, { now: () => clock.now() }) : store);
  const store = inTime(first.store);
  const grants = new RegistryGrants(new PlatformSecret(Buffer.alloc(32, 7)));
  const metrics = openMetrics();
  const { beforeWrite = () => {} } = options;
  const hooked = <Port extends object>(port: Port) =>
    withFaults(beforeCall ? withPauses(port, beforeCall) : port, beforeWrite);
  const bus = options.bus ?? openInProcessBus({ log });
  const tokens = resources.use(new TokenChecks({ store, bus, clock: options.tokenClock ?? systemClock, log }));
  await tokens.listen();
  const shared = {
    bus,
    tokens,
    gc: { ...defaultGcSettings, ...options.gc },
    clock,
    hashing,
    log,
    grants,
    limits: { ...noLimits, ...options.limits },
    behindLoadBalancer: options.behindLoadBalancer ?? false,
    defaultCluster: 'main',
    publicUrl,
  };
  const instances = await Promise.all(
    ports.map(async (port) => {
      const faulty = { store: hooked(inTime(port.store)), blobs: hooked(port.blobs) };
      // Each process has its own metrics.
      const own = port === first ? metrics : openMetrics();
      return await openInstance({ ...shared, ...faulty, metrics: own }, resources);
    }),
  );
  const [firstInstance] = instances as [RegistryInstance];
  const { port } = firstInstance;
  for (const id of ['acme', 'other']) await store.insert(accounts, { id, createdAt: clock.now() });

  const addToken = async (account: string, scopes: readonly Scope[]) => {
    const made = newSecret('access');
    await store.insert(accessTokens, accessTokenDocument(made, { account, name: 'test', scopes }, clock.now()));
    return made;
  };
  const token = await addToken('acme', ['read', 'push']);
  const basic = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`;
  let requests = 0;
  const send = async (path: string, sent: Sent = {}): Promise<Answer> =>
    await sendTo(instances[requests++ % instances.length]?.port ?? port, path, sent);
  const kept = resources.move();
  return {
    store,
    blobs,
    clock,
    folder,
    grants,
    tokens,
    hashing,
    metrics,
    logLines,
    port,
    host: `127.0.0.1:${port}`,
    token,
    addToken,
    basic,
    send,
    /** Sends a request with a token of `acme` that may read and push. */
    as: async (path: string, sent: Sent = {}) =>
      await send(path, { ...sent, headers: { authorization: basic('acme', token), ...sent.headers } }),
    /** The garbage collector of the first registry. */
    get collector() {
      return firstInstance.registry.collector;
    },
    /** The quota of the first registry. */
    get quota() {
      return firstInstance.registry.quota;
    },
    /** Opens the registries again, without their state in memory, like new processes. */
    restart: async () => void (await Promise.all(instances.map(async (instance) => await instance.restart()))),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

interface RegistryInstance {
  readonly port: number;
  readonly registry: Registry;
  restart(): Promise<void>;
}

/** Opens a registry with its own listener. */
async function openInstance(
  deps: Parameters<typeof openRegistry>[0],
  resources: AsyncDisposableStack,
): Promise<RegistryInstance> {
  let registry = openRegistry(deps);
  const server = newServer();
  server.on('request', (request, response) => void registry.handle(request, response));
  const listener = resources.use(await listen(server, { host: '127.0.0.1', port: 0, drainMs: 1_000 }));
  resources.defer(async () => await registry[Symbol.asyncDispose]());
  const restart = async () => {
    await registry[Symbol.asyncDispose]();
    registry = openRegistry(deps);
  };
  return {
    port: listener.port,
    get registry() {
      return registry;
    },
    restart,
  };
}

/** Pushes a blob in one request. */
export async function pushBlob(registry: TestRegistry, repository: string, bytes: Uint8Array | string) {
  const digest = sha256(bytes);
  const answer = await registry.as(`/v2/${repository}/blobs/uploads/?digest=${digest}`, {
    method: 'POST',
    body: bytes,
  });
  if (answer.status !== 201) throw new Error(`Push of a blob answered ${answer.status}: ${answer.body.toString()}`);
  return { digest, size: Buffer.byteLength(bytes) };
}

/** Pushes a manifest under a tag or its digest. */
export async function putManifest(
  registry: TestRegistry,
  target: { readonly repository: string; readonly reference: string },
  manifest: { readonly mediaType: string; readonly [field: string]: unknown },
): Promise<Answer & { readonly digest: string }> {
  const body = JSON.stringify(manifest);
  const answer = await registry.as(`/v2/${target.repository}/manifests/${target.reference}`, {
    method: 'PUT',
    headers: { 'content-type': manifest.mediaType },
    body,
  });
  return { ...answer, digest: sha256(body) };
}

/** Pushes a small image whose config has these labels. */
export async function pushImage(
  registry: TestRegistry,
  target: { readonly repository: string; readonly reference: string },
  about: { readonly labels?: object; readonly architecture?: string; readonly extra?: object } = {},
) {
  const config = { os: 'linux', architecture: about.architecture ?? 'amd64', config: { Labels: about.labels ?? {} } };
  const configBlob = await pushBlob(registry, target.repository, JSON.stringify(config));
  const layer = await pushBlob(registry, target.repository, 'a layer');
  return await putManifest(registry, target, {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...configBlob },
    layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', ...layer }],
    ...about.extra,
  });
}

const writes = ['insert', 'update', 'delete', 'createUpload', 'appendUpload', 'publishUpload', 'deleteUpload'];

/** Returns a port that calls a function before each write, which fails if that throws. */
function withFaults<Port extends object>(
  port: Port,
  beforeWrite: NonNullable<TestRegistryOptions['beforeWrite']>,
): Port {
  return steered(port, {
    onCall: async ({ method, collection, run }) => {
      if (writes.includes(method)) beforeWrite(method, collection);
      return await run();
    },
  });
}

const calls = ['get', 'insert', 'update', 'delete', 'find', 'stat', 'read', 'digestUpload', 'publishUpload'];

/** Returns a port whose calls wait for a function. */
export function withPauses<Port extends object>(port: Port, beforeCall: (method: string) => Promise<void>): Port {
  return steered(port, {
    onCall: async ({ method, run }) => {
      if (calls.includes(method)) await beforeCall(method);
      return await run();
    },
  });
}

/** Sends a request to a registry on this machine, on a new connection. */
export async function sendTo(
  port: number,
  path: string,
  { method = 'GET', headers = {}, body }: Sent,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', reject);
    response.on('end', () => {
      const bytes = Buffer.concat(chunks);
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: bytes, code: errorCode(bytes) });
    });
  });
  request.on('error', reject);
  if (body instanceof Readable) {
    body.on('error', (error) => request.destroy(error));
    body.pipe(request);
  } else {
    request.end(body);
  }
  return await promise;
}

function errorCode(body: Buffer): string | undefined {
  try {
    return (JSON.parse(body.toString('utf8')) as { errors?: { code: string }[] }).errors?.[0]?.code;
  } catch {
    return undefined;
  }
}
