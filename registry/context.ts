/** The dependencies of the registry's handlers, and of the functions that push content. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Blobs } from '../core/blobs/blobs.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { DiskReserve } from '../core/files/disk-reserve.ts';
import type { HashThreads } from '../core/hash/hash-threads.ts';
import type { BodyMemory } from '../core/http/body-memory.ts';
import type { StalledDownloads } from '../core/http/stalled-downloads.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Store } from '../core/store/store.ts';
import type { Permissions } from '../model/permissions.ts';
import type { RegistryGrants, RepositoryAccess } from '../model/registry-grant.ts';
import type { TokenChecks } from '../model/token-checks.ts';
import type { RateLimits } from './access/rate-limits.ts';
import type { BusyUploads } from './content/uploads.ts';
import type { GarbageCollector } from './gc/garbage-collector.ts';
import type { GcSettings } from './gc/gc-run.ts';
import type { Quota } from './quota/quota.ts';

/** Limits on one account or one address. In every limit, 0 means no limit. */
export interface RegistryLimits {
  /** Bytes that an account may store, each blob counted once. */
  readonly accountBytes: number;
  readonly blobBytes: number;
  /** Upload sessions that an account may have open. */
  readonly openUploads: number;
  /** Requests of one account, or of one address without an account. */
  readonly requestsPerSecond: number;
  /** Failed logins of one user from one address. */
  readonly failedLoginsPerMinute: number;
}

/** The dependencies of a push, by a client of the registry or from an image archive. */
export interface ContentDeps {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly hashing: HashThreads;
  /** The reserve of the disk with the store, if that is a disk of this machine. */
  readonly reserve?: DiskReserve;
  readonly clock: Clock;
  readonly log: Log;
  readonly bus: Bus;
  readonly limits: RegistryLimits;
  /** The cluster of services that a push creates. */
  readonly defaultCluster: string;
  readonly gc: GcSettings;
}

export interface ContentContext extends ContentDeps {
  readonly quota: Quota;
  readonly collector: Pick<GarbageCollector, 'finishRemovals'>;
  /** Disconnects clients that do not receive their downloads. */
  readonly downloads: StalledDownloads;
  /** Aborts when the registry closes. */
  readonly signal: AbortSignal;
}

export interface RegistryDeps extends ContentDeps {
  readonly metrics: Metrics;
  readonly grants: RegistryGrants;
  readonly tokens: TokenChecks;
  /** Whether a load balancer sets `X-Forwarded-For`. Rate limits count requests by that address. */
  readonly behindLoadBalancer: boolean;
  /** Where clients reach the registry, such as `https://registry.example.com`. Without it, the Host header is used. */
  readonly publicUrl: string | undefined;
}

export interface RegistryContext extends RegistryDeps, ContentContext {
  readonly uploads: BusyUploads;
  readonly bodies: BodyMemory;
  readonly rates: RateLimits;
}

/** An action in a repository. */
export type RepositoryAction = RepositoryAccess['actions'][number];

/**
 * What a route requires of its caller: any one of these actions in the repository, listing the repositories of its account
 * (`catalog`), or only valid credentials (`any`).
 */
export type Right = readonly RepositoryAction[] | 'catalog' | 'any';

export interface Caller {
  /** The account or node; empty for an anonymous grant. */
  readonly subject: string;
  readonly by: 'grant' | 'login';
  /** What its access token allows. Absent for a node and for an anonymous grant. */
  readonly permissions?: Permissions;
  /** Whether it has the right itself. `mayPull` also allows public repositories. */
  may(repository: string, action: RepositoryAction): boolean;
  /** Whether it may mount blobs of a repository by its own right, beside those it may pull from. */
  mayMountFrom(repository: string): boolean;
  /** Whether it may list the repositories of its account: all, or those of some services. */
  readonly mayList: boolean;
  readonly services?: readonly string[];
}

/** One request in progress. */
export interface RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  /** Fields of the request's log line, beside the operation. */
  readonly logFields: { subject?: string };
}

/** A request whose caller has the right that its route requires. */
export interface AuthorizedRequest<Parameters = unknown> extends RequestContext {
  readonly caller: Caller;
  /** From the path. */
  readonly parameters: Parameters;
}
