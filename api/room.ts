import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { JsonBodies } from '../core/http/json-bodies.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Queue } from '../core/queue/queue.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import type { Store } from '../core/store/store.ts';
import type { Image } from '../model/image.ts';
import type { UploadQuery } from '../contract/service.ts';
import type { Environment } from '../model/service.ts';
import type { BackendWatch } from '../model/backend-watch.ts';

/** Where clients find what this room talks about. No URL ends with a slash. */
export interface PublicUrls {
  readonly api: string;
  readonly proxy: string;
  /** Host and port, as in an image's name. */
  readonly registryHost: string;
}

/** Defaults and bounds of spawns. */
export interface SpawnRules {
  readonly defaultMaxIdleSeconds: number;
  readonly maxIdleSecondsLimit: number;
  /** Absent: sessions may live for ever. */
  readonly defaultLifetimeSeconds?: number;
  readonly lifetimeSecondsLimit: number;
  readonly mountsEnabled: boolean;
  readonly defaultCluster: string;
  /** How long a backend may wait for a node. */
  readonly schedulingTimeoutSeconds: number;
  /** For how long garbage collection leaves an image alone that was chosen to run, and is not noted down to be needed yet. */
  readonly imageLeaseSeconds: number;
  /** Whether nodes are told to fetch new images before somebody asks for them. */
  readonly prefetchEnabled: boolean;
  /** How long an ended backend and its history stay. */
  readonly backendHistorySeconds: number;
}

/** Images in and out as archives: what the registry does for this room. What it throws are `ApiError`s. */
export interface ImageArchives {
  /** Reads the archive in a request's body, stores what is missing of it, and tags the image. */
  receive(upload: {
    /** `<account>/<service>`; the service is made if it is not there. */
    readonly repository: string;
    /** The account of the one who pushes. */
    readonly by: string;
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly wish: UploadQuery;
    /** Aborts when the client leaves. */
    readonly signal: AbortSignal;
  }): Promise<Image>;
  /** An image of a repository as an archive, or `undefined` if there is no such image. */
  write(repository: string, digest: string): Promise<ImageArchive | undefined>;
}

export interface ImageArchive {
  readonly fileName: string;
  readonly sizeBytes: number;
  /** Writes the bytes to an answer, which stays open. Rejects when the client leaves, and where they cannot be had any more. */
  copyTo(response: ServerResponse): Promise<void>;
}

/** What the API room is handed. */
export interface ApiDependencies {
  readonly store: Store;
  readonly queue: Queue;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly urls: PublicUrls;
  readonly rules: SpawnRules;
  /** Absent where this process cannot reach the bytes of images. */
  readonly archives: ImageArchives | undefined;
  /**
   * The node whose worker runs in this process, while it does: what becomes of its backends, that worker alone decides. It cannot
   * be dead, whatever its lease says.
   */
  readonly ownNode?: () => string | undefined;
  /** By it the gateways of nodes know this process. */
  readonly secret: PlatformSecret;
  /** The connection token that is derived from a text (`tokenSource`). */
  readonly tokenFor: (source: string) => string;
  /** The secret token that belongs to a connection token. */
  readonly secretFor: (connectionToken: string) => string;
}

/** What its handlers share. */
export interface Api extends ApiDependencies {
  readonly watch: BackendWatch;
  readonly bodies: JsonBodies;
  /** Notes when a service was last spawned, in its own time. */
  readonly noteSpawn: (service: string, environment: string, time: Date) => void;
  /** Lets nodes fetch the images of these environments of a service, in its own time. */
  readonly prefetch: (service: string, isMeant: (environment: Environment) => boolean) => void;
  /** Aborts when the room closes: streams end then. */
  readonly closing: AbortSignal;
}
