/** The client of the service API. */
import { AccessTokens, Accounts, TrustRules } from './accounts.ts';
import { downloadArchive, uploadArchive } from './archives.ts';
import type { ArchiveUpload } from './archives.ts';
import { logOf, metricsOf, statusesOf, untilReady, untilTerminated } from './backend-streams.ts';
import type { LogLine, LogOptions, WaitOptions } from './backend-streams.ts';
import { sendChange, sendIdempotent } from './changes.ts';
import type { CallOptions } from './changes.ts';
import type {
  Backend,
  BackendListItem,
  BackendStatus,
  CliLoginStatus,
  ConnectRequest,
  ConnectResponse,
  Endpoints,
  Image,
  Metrics,
  RunningBackend,
  Service,
  Traffic,
} from './contract.ts';
import { servicePath } from './names.ts';
import { Nodes } from './nodes.ts';
import { LogIns, Users } from './people.ts';
import { Environments, Settings, SpawnTokens } from './services.ts';
import { followEvents } from './streams.ts';
import type { StreamOptions } from './streams.ts';
import { Transport } from './transport.ts';
import type { CallInput, EndpointName, ListOptions, SendOptions, TransportOptions } from './transport.ts';

export interface EnvironmentOptions extends CallOptions {
  /** Default: `default`. */
  readonly environment?: string | undefined;
}

/** Services are named `<account>/<service>`, as their images are. Backends are named by their ID, `backend_id` of a connect. */
export class BerthClient {
  readonly environments: Environments;
  readonly settings: Settings;
  readonly spawnTokens: SpawnTokens;
  readonly accounts: Accounts;
  readonly tokens: AccessTokens;
  readonly trustRules: TrustRules;
  /** The nodes of the platform, for administrators. */
  readonly nodes: Nodes;
  readonly users: Users;
  readonly logIns: LogIns;
  readonly #transport: Transport;

  constructor(options: TransportOptions) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.environments = new Environments(transport);
    this.settings = new Settings(transport);
    this.spawnTokens = new SpawnTokens(transport);
    this.accounts = new Accounts(transport);
    this.tokens = new AccessTokens(transport);
    this.trustRules = new TrustRules(transport);
    this.nodes = new Nodes(transport);
    this.users = new Users(transport);
    this.logIns = new LogIns(transport);
  }

  /**
   * Gets a connection URL to the backend that holds a key, or to a new backend.
   *
   * With a key, the call is retried when no response arrives: the second request finds the backend of the first (and reports
   * `spawned: false`). Without a key it is not retried, because each request would start a backend.
   */
  async connect(
    service: string,
    request: ConnectRequest = {},
    { environment, signal, timeoutMs }: EnvironmentOptions = {},
  ): Promise<ConnectResponse> {
    const send = { signal, timeoutMs, repeatable: request.key !== undefined };
    const path = servicePath(service);
    if (environment === undefined) return await this.#transport.json('connect', { path, body: request }, send);
    return await this.#transport.json('connectEnvironment', { path: { ...path, environment }, body: request }, send);
  }

  /** The current status of a backend. Needs no access token. */
  async status(backend: string, options?: CallOptions): Promise<BackendStatus> {
    return await this.#transport.json('backendStatus', { path: { backend_id: backend } }, options);
  }

  /**
   * The past statuses of a backend, then each new status until it is `terminated`. Needs no access token. Reconnects by itself; no
   * status arrives twice.
   */
  statuses(backend: string, options?: StreamOptions): AsyncGenerator<BackendStatus, void, undefined> {
    return statusesOf(this.#transport, backend, options);
  }

  /**
   * Waits until a backend is ready, and returns that status. Rejects with the code `BackendEnded` when it ends before, and `TimedOut`
   * after `timeoutMs`. Needs no access token.
   */
  async waitUntilReady(backend: string, options: WaitOptions = {}): Promise<BackendStatus> {
    return await untilReady(this.#transport, backend, options);
  }

  /** Waits until a backend is `terminated`, and returns that status. Needs no access token. */
  async waitUntilTerminated(backend: string, options: WaitOptions = {}): Promise<BackendStatus> {
    return await untilTerminated(this.#transport, backend, options);
  }

  /**
   * The log of a backend: the stored lines, then, unless `follow` is false, each new line until it has ended. Reconnects by itself; no
   * line arrives twice.
   */
  logs(backend: string, options?: LogOptions): AsyncGenerator<LogLine, void, undefined> {
    return logOf(this.#transport, backend, options);
  }

  /** The resource usage of a backend, every second until it has ended. Reconnects by itself. */
  metrics(backend: string, options?: StreamOptions): AsyncGenerator<Metrics, void, undefined> {
    return metricsOf(this.#transport, backend, options);
  }

  /** Stops a backend: with SIGTERM, or by force if `hard` is true. Resolves when the signal was sent, before the backend has ended. */
  async stop(
    backend: string,
    { hard, signal, timeoutMs }: CallOptions & { readonly hard?: boolean } = {},
  ): Promise<void> {
    const body = hard === undefined ? {} : { hard };
    const input = { path: { backend_id: backend }, body };
    await sendChange(this.#transport, 'terminate', input, {
      options: { signal, timeoutMs },
      doneBefore: ['BackendNotRunning'],
    });
  }

  /** Stops all backends of a service that were spawned before a time, or only counts them. */
  async stopBackends(
    service: string,
    request: Endpoints['terminateBackends']['body'],
    options?: CallOptions,
  ): Promise<Endpoints['terminateBackends']['answer']> {
    const input = { path: servicePath(service), body: request };
    return await sendIdempotent(this.#transport, 'terminateBackends', input, options);
  }

  /** A backend and its status history. */
  async backend(backend: string, options?: CallOptions): Promise<Backend> {
    return await this.#transport.json('backend', { path: { backend_id: backend } }, options);
  }

  /** The traffic of a backend so far; at most a few seconds old. */
  async traffic(backend: string, options?: CallOptions): Promise<Traffic> {
    return await this.#transport.json('backendTraffic', { path: { backend_id: backend } }, options);
  }

  /** The backends of a service, newest first; `start` and `end` limit the time of their creation. */
  backends(
    service: string,
    options: ListOptions & { readonly start?: Date; readonly end?: Date } = {},
  ): AsyncGenerator<BackendListItem, void, undefined> {
    const path = servicePath(service);
    const query = { start: options.start?.toISOString(), end: options.end?.toISOString() };
    return this.#transport.list('serviceBackends', 'backends', { path, query }, options);
  }

  /** The running backends of an account, newest first. */
  runningBackends(account: string, options?: ListOptions): AsyncGenerator<RunningBackend, void, undefined> {
    return this.#transport.list('accountBackends', 'running_backends', { path: { account } }, options);
  }

  /** The names of an account's services, without the account. */
  services(account: string, options?: ListOptions): AsyncGenerator<string, void, undefined> {
    return this.#transport.list('listServices', 'services', { path: { account } }, options);
  }

  /** A service and its environments. */
  async service(service: string, options?: CallOptions): Promise<Service> {
    return await this.#transport.json('service', { path: servicePath(service) }, options);
  }

  /** Creates a service. */
  async createService(service: string, { signal, timeoutMs }: CallOptions = {}): Promise<void> {
    const { account, service: name } = servicePath(service);
    const input = { path: { account }, body: { name } };
    await sendChange(this.#transport, 'createService', input, {
      options: { signal, timeoutMs },
      doneBefore: ['ServiceExists'],
    });
  }

  /** Deletes a service: it accepts no connects from now on, its backends are stopped, and its images deleted. */
  async deleteService(service: string, options?: CallOptions): Promise<void> {
    const input = { path: servicePath(service) };
    await sendChange(this.#transport, 'deleteService', input, { options, doneBefore: ['ServiceNotFound'] });
  }

  /** The images of a service, newest first. */
  images(service: string, options?: ListOptions): AsyncGenerator<Image, void, undefined> {
    return this.#transport.list('serviceImages', 'images', { path: servicePath(service) }, options);
  }

  /** Sets the image that new backends run by default: a tag or a digest. */
  async setImage(
    service: string,
    image: string,
    { environment, signal, timeoutMs }: EnvironmentOptions = {},
  ): Promise<void> {
    const send = { signal, timeoutMs, repeatable: true };
    const path = servicePath(service);
    const body = { image_tag: image };
    if (environment === undefined) await this.#transport.json('update', { path, body }, send);
    else await this.#transport.json('updateEnvironment', { path: { ...path, environment }, body }, send);
  }

  /** The name with which to tag an image of a service before `docker push`. */
  async imageName(service: string, options?: CallOptions): Promise<string> {
    return (await this.#transport.json('imageName', { path: servicePath(service) }, options)).imageName;
  }

  /**
   * Uploads an image without Docker: the bytes of an archive of `docker save`, or of an OCI layout as a tar. Creates the service if
   * there is none. The upload is never retried.
   */
  async uploadImage(service: string, upload: ArchiveUpload): Promise<Image> {
    return await uploadArchive(this.#transport, servicePath(service), upload);
  }

  /** Downloads an image as an archive for `docker load` and other tools. Resolves with the response when its head has arrived. */
  async downloadImage(service: string, digest: string, options: CallOptions = {}): Promise<Response> {
    return await downloadArchive(this.#transport, { ...servicePath(service), digest }, options);
  }

  /**
   * Waits until a user has confirmed the log-in of a command line in a browser (`beginCliLogin`). Resolves with `expired` if the log-in
   * expires first.
   */
  async cliLoginStatus(token: string, { signal }: CallOptions = {}): Promise<CliLoginStatus['status']> {
    const isComplete = async (hadEvents: boolean) => hadEvents;
    const stream = { name: 'cliLoginStatus', input: { path: { token } }, isComplete, signal } as const;
    for await (const { data } of followEvents(this.#transport, stream)) {
      return (JSON.parse(data) as CliLoginStatus).status;
    }
    return 'expired';
  }

  /** Calls any endpoint that answers with JSON, by its name in the OpenAPI document. */
  async call<Name extends EndpointName>(
    name: Name,
    input: CallInput<Name>,
    options?: SendOptions,
  ): Promise<Endpoints[Name]['answer']> {
    return await this.#transport.json(name, input, options);
  }
}
