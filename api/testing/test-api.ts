/** The fixture of the API's tests: the API on a real server with a real store, queue and bus. */
import { spawnJob } from '../../contract/jobs.ts';
import { backendChanged } from '../../contract/messages.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { listen, newServer } from '../../core/http/listener.ts';
import { silentLog } from '../../core/log/log.ts';
import { openMetrics } from '../../core/metrics/metrics.ts';
import { openInProcessQueue } from '../../core/queue/in-process.ts';
import { JobHandlers } from '../../core/queue/queue.ts';
import { PasswordHashes } from '../../core/secret/password-hash.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import { upsert } from '../../core/store/upsert.ts';
import type { Store } from '../../core/store/store.ts';
import { accessTokenDocument, accessTokens, newSecret } from '../../model/access-token.ts';
import { scopes as allScopes } from '../../contract/scopes.ts';
import type { Scope } from '../../contract/scopes.ts';
import { advance, assign, backends, becomeReady } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { accounts } from '../../model/account.ts';
import { imageId, images } from '../../model/image.ts';
import { TokenChecks } from '../../model/token-checks.ts';
import { purgeRepository } from '../../registry/index.ts';
import { openApi } from '../index.ts';
import type { SpawnRules } from '../dependencies.ts';
import { spawnRules } from './spawn-rules.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

const log = silentLog();

/** The lowest costs that argon2 has: with those of the platform, each password takes 160 ms of a core. */
const lowestCosts = { memory: 8, passes: 1, parallelism: 1 };

/** The path of a connect request to the service that exists from the start. */
export const connectPath = '/v2/service/acme/draw/connect';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a client sees has no type
  readonly body: any;
}

export interface TestApiOptions {
  readonly oidcIssuers?: readonly string[];
  readonly invalidTokensPerMinute?: number;
  readonly behindLoadBalancer?: boolean;
  readonly accountLimits?: { readonly connectsPerSecond: number; readonly runningBackends: number };
  /** Wraps the store that the API uses. Default: the real store. */
  readonly storeOf?: (store: Store) => Store;
  readonly rules?: Partial<SpawnRules>;
  /** Default: the system clock. */
  readonly clock?: Clock;
  readonly ownNode?: string;
  /** The URL of sessions with their own hosts. Default: there are none. */
  readonly sessions?: string;
  /** Where session URLs lead. Default: a name that does not exist. */
  readonly proxyUrl?: string;
}

export type TestApi = Awaited<ReturnType<typeof openTestApi>>;

/** Opens an API with a service `acme/draw` that has one image: `latest`, with the digest `digestOf('a')`. */
export async function openTestApi(options: TestApiOptions = {}) {
  await using parts = new AsyncDisposableStack();
  const opened = await openComponent(parts, options);
  const { store, bus, base } = opened;
  const tokenFor = async (account: string, scopes: readonly Scope[]) => {
    const made = newSecret('access');
    await upsert(store, accounts, account, (current) => current ?? { id: account, createdAt: new Date() });
    await store.insert(accessTokens, accessTokenDocument(made, { account, name: 'test', scopes }, new Date()));
    return made;
  };
  const token = await tokenFor('acme', allScopes);
  const client = clientOf(base, token);
  const addService = async (name: string) => {
    const { status } = await client.post('/v2/account/acme/service', { name });
    if (status !== 200) throw new Error(`The service "${name}" cannot be added: ${status}`);
  };
  const addImage = async (repository: string, tag: string, digest: string) => {
    const id = imageId(repository, tag, digest);
    await store.insert(images, { id, repository, tag, digest, uploadTime: new Date(), sizeBytes: 1 });
  };
  await addService('draw');
  await addImage('acme/draw', 'latest', digestOf('a'));
  const kept = parts.move();
  return {
    ...opened,
    ...client,
    /** An access token of `acme` with all scopes. */
    token,
    tokenFor,
    addService,
    addImage,
    /** Changes a backend and publishes the change, as its worker does. */
    change: async (id: string, by: (backend: Backend) => Backend) => {
      const changed = await store.update(backends, id, by);
      if (changed) await bus.publish(backendChanged, { backend: id, status: changed.status });
    },
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

async function openComponent(parts: AsyncDisposableStack, options: TestApiOptions) {
  const { storeOf = (real) => real, clock = systemClock, ownNode } = options;
  const store = storeOf(parts.use(await openTestStore()));
  const bus = parts.use(openInProcessBus({ log }));
  const queue = parts.use(openInProcessQueue({ clock: systemClock, log }));
  /** The backends whose spawn jobs were added. */
  const notified: string[] = [];
  const handlers = new JobHandlers().on(spawnJob, async ({ backend }) => void notified.push(backend));
  parts.use(await queue.consume('cluster-main', handlers, { concurrency: 1 }));
  const server = newServer();
  const { port } = parts.use(await listen(server, { host: '127.0.0.1', port: 0, drainMs: 100 }));
  const base = `http://127.0.0.1:${port}`;
  const secret = new PlatformSecret(Buffer.alloc(32, 1));
  const tokens = parts.use(new TokenChecks({ store, bus, clock, log }));
  await tokens.listen();
  const passwords = new PasswordHashes(lowestCosts);
  const ports = { store, queue, bus, clock, log, metrics: openMetrics(), secret, tokens, passwords };
  const component = parts.use(
    await openApi({
      ...ports,
      archives: undefined,
      purgeRepository: (repository, before) => purgeRepository(store, repository, before),
      behindLoadBalancer: options.behindLoadBalancer ?? false,
      invalidTokensPerMinute: options.invalidTokensPerMinute ?? 0,
      oidcIssuers: options.oidcIssuers ?? [],
      accountLimits: options.accountLimits ?? { connectsPerSecond: 0, runningBackends: 0 },
      ownNode: () => ownNode,
      urls: {
        api: base,
        proxy: options.proxyUrl ?? 'https://sessions.example',
        sessions: options.sessions,
        registryHost: 'registry.example',
      },
      rules: { ...spawnRules, prefetchEnabled: true, ...options.rules },
      tokenFor: secret.deriver('connection tokens'),
      secretFor: (connectionToken) => `secret of ${connectionToken}`,
    }),
  );
  server.on('request', (request, response) => void component.handle(request, response));
  return { store, bus, secret, notified, port, base, component, metrics: ports.metrics };
}

function clientOf(base: string, token: string) {
  const call = async (method: string, path: string, init: RequestInit = {}): Promise<Reply> => {
    const response = await fetch(base + path, { method, redirect: 'manual', ...init });
    const text = await response.text();
    const isJson = response.headers.get('content-type') === 'application/json';
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return {
    call,
    get: async (path: string, as = token) => await call('GET', path, { headers: { authorization: `Bearer ${as}` } }),
    post: async (path: string, body?: unknown, as = token) => {
      const headers = { authorization: `Bearer ${as}`, 'content-type': 'application/json' };
      return await call('POST', path, { headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
    },
  };
}

/** A digest that repeats one hexadecimal digit. */
export function digestOf(digit: string): string {
  return `sha256:${digit.repeat(64)}`;
}

export function becomeServing(backend: Backend): Backend {
  const at = { host: '127.0.0.1', port: 1 };
  return becomeReady(advance(assign(backend, 'node-1'), 'waiting', new Date()), at, new Date());
}
