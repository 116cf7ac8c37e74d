/** The dependencies of the API: those of the component, and what its handlers share. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UrlForm } from '../contract/connect.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { JsonBodies } from '../core/http/json-bodies.ts';
import type { EventStreams } from '../core/http/sse.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Queue } from '../core/queue/queue.ts';
import type { PasswordHashes } from '../core/secret/password-hash.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import type { SecretBox } from '../core/secret/secret-box.ts';
import type { Store } from '../core/store/store.ts';
import type { ContainerEnv } from '../model/container-env.ts';
import type { Image } from '../model/image.ts';
import type { UploadQuery } from '../contract/service.ts';
import type { Environment } from '../model/service.ts';
import type { BackendWatch } from '../model/backend-watch.ts';
import type { CheckQueue } from './accounts/check-queue.ts';
import type { CliLoginWatch } from './accounts/cli-logins.ts';
import type { AccountLimits } from '../model/account.ts';
import type { FailureLimits } from '../model/failure-limits.ts';
import type { AccountLimiter } from './account-limits.ts';
import type { IdTokens } from './accounts/id-tokens.ts';
import type { TokenChecks } from '../model/token-checks.ts';
import type { OpenRequests } from './open-requests.ts';
import type { PullProgresses } from './ready/pull-progress.ts';

/** The public addresses in responses of the API. No URL ends with a slash. */
export interface PublicUrls {
  readonly api: string;
  readonly proxy: string;
  /** The URL of sessions with their own hosts, with `*` for the label. Absent: all sessions share the proxy's host. */
  readonly sessions?: string | undefined;
  /** Host and port, as in an image's name. */
  readonly registryHost: string;
}

/** Defaults and limits of spawns. */
export interface SpawnRules {
  readonly defaultMaxIdleSeconds: number;
  readonly maxIdleSecondsLimit: number;
  /** Default: no limit. */
  readonly defaultLifetimeSeconds?: number;
  readonly lifetimeSecondsLimit: number;
  /** The highest memory limit of a backend. */
  readonly memoryBytesLimit: number;
  readonly mountsEnabled: boolean;
  /** The form of connection URLs, if neither the request nor the service asks for another one. */
  readonly urlForm: UrlForm;
  readonly defaultCluster: string;
  /** How long a backend may wait for a node. */
  readonly schedulingTimeoutSeconds: number;
  /** How long garbage collection keeps an image after it was selected for a backend, until the backend's document refers to it. */
  readonly imageLeaseSeconds: number;
  /** Whether nodes are notified to prefetch new images. */
  readonly prefetchEnabled: boolean;
  /** How long an ended backend is kept, with its history. */
  readonly backendHistorySeconds: number;
  /** How long the audit keeps a record. */
  readonly auditDays: number;
}

/** Imports and exports images as archives; implemented by the registry. It throws `ApiError`s. */
export interface ImageArchives {
  /** Reads the archive in a request's body, stores the missing blobs and manifests, and tags the image. */
  receive(upload: {
    /** `<account>/<service>`; the service is created if it does not exist. */
    readonly repository: string;
    /** The account of the caller. */
    readonly by: string;
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly selector: UploadQuery;
    /** Aborts when the client disconnects. */
    readonly signal: AbortSignal;
  }): Promise<Image>;
  /** Exports an image of a repository; `undefined` if there is no such image. */
  write(repository: string, digest: string): Promise<ImageArchive | undefined>;
}

export interface ImageArchive {
  readonly fileName: string;
  readonly sizeBytes: number;
  /** Writes the archive to a response, without ending it. Rejects if the client disconnects or the bytes cannot be read. */
  copyTo(response: ServerResponse): Promise<void>;
}

/** The dependencies of the API component. */
export interface ApiDependencies {
  readonly store: Store;
  readonly queue: Queue;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly urls: PublicUrls;
  readonly rules: SpawnRules;
  /** `undefined` if this process cannot read the bytes of images. */
  readonly archives: ImageArchives | undefined;
  /** Deletes all images and tags of a repository that were pushed before a time. */
  readonly purgeRepository: (repository: string, before: Date) => Promise<void>;
  /**
   * The node whose worker runs in this process, while it runs. Only that worker ends its backends: the node is alive, even if its
   * lease has expired.
   */
  readonly ownNode?: () => string | undefined;
  /** Authenticates this process to the gateways of nodes. */
  readonly secret: PlatformSecret;
  readonly tokens: TokenChecks;
  readonly passwords: PasswordHashes;
  /** Whether a load balancer in front sets `X-Forwarded-For`. */
  readonly behindLoadBalancer: boolean;
  /** The URLs of the issuers whose ID tokens trust rules may name. */
  readonly oidcIssuers: readonly string[];
  /** How many invalid tokens a network may send in a minute, across processes. 0: no limit. */
  readonly invalidTokensPerMinute: number;
  /** For accounts without their own limits. 0: no limit. */
  readonly accountLimits: Required<AccountLimits>;
  /** Derives a connection token from a text (`connectionToken`). */
  readonly tokenFor: (source: string) => string;
  /** The secret token of a connection token. */
  readonly secretFor: (connectionToken: string) => string;
}

/** The dependencies of the handlers. */
export interface Api extends ApiDependencies {
  readonly watch: BackendWatch;
  readonly pullProgresses: PullProgresses;
  readonly bodies: JsonBodies;
  readonly eventStreams: EventStreams;
  readonly limits: AccountLimiter;
  readonly idTokens: IdTokens;
  readonly cliLogins: CliLoginWatch;
  /** Limits failed checks of tokens across processes. */
  readonly failures: FailureLimits;
  /** Checks of passwords that wait or run in this process. */
  readonly passwordChecks: CheckQueue;
  /** Proves, from a browser and a user, that the user has logged in there. */
  readonly deviceProof: (device: string) => string;
  /** Derives the bearer token of a backend that was spawned with `require_bearer_token`. */
  readonly bearerFor: (backend: string) => string;
  readonly containerEnv: ContainerEnv;
  /** Removes in the background what belonged to deleted services. */
  readonly clearServices: () => void;
  /** Encrypts the secrets of services. */
  readonly serviceSecrets: SecretBox;
  /** Encrypts the options of spawn tokens. */
  readonly spawnOptions: SecretBox;
  /** Records in the background when a service was last spawned. */
  readonly recordSpawn: (service: string, environment: string, time: Date) => void;
  /** Notifies nodes in the background to prefetch the images of some environments of a service. */
  readonly prefetch: (service: string, isSelected: (environment: Environment) => boolean) => void;
  readonly openRequests: OpenRequests;
}
