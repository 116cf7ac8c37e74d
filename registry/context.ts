/** What every handler of the registry is handed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Blobs } from '../core/blobs/blobs.ts';
import type { Bus } from '../core/bus/bus.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { DiskReserve } from '../core/files/disk-reserve.ts';
import type { HashThreads } from '../core/hash/hash-threads.ts';
import type { Log } from '../core/log/log.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Store } from '../core/store/store.ts';
import type { RegistryGrants, RepositoryAccess } from '../model/registry-grant.ts';
import type { CollectionSettings } from './gc/settings.ts';
import type { RegistryLimits } from './quota/limits.ts';
import type { Quota } from './quota/quota.ts';
import type { RateLimits } from './access/rate-limits.ts';
import type { PullWatch } from './http/pull-watch.ts';
import type { BusyUploads } from './content/busy-uploads.ts';

export interface RegistryDeps {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly hashing: HashThreads;
  /** Of the disk with the store, where that is a disk of this machine. */
  readonly reserve?: DiskReserve;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly grants: RegistryGrants;
  readonly bus: Bus;
  readonly limits: RegistryLimits;
  /** Whether `X-Forwarded-For` is the word of a load balancer. It tells whose requests are counted together. */
  readonly behindLoadBalancer: boolean;
  /** The cluster of services that a push makes. */
  readonly defaultCluster: string;
  /** Where clients reach the registry, such as `https://registry.example.com`. Without it, the Host header tells. */
  readonly publicUrl: string | undefined;
  readonly collection: CollectionSettings;
}

export interface RegistryContext extends RegistryDeps {
  readonly uploads: BusyUploads;
  readonly pulls: PullWatch;
  readonly rates: RateLimits;
  readonly quota: Quota;
  readonly collector: RemovalFinisher;
  /** Aborts when the registry closes. */
  readonly signal: AbortSignal;
}

/** What those who push ask of the collector. */
export interface RemovalFinisher {
  /** Finishes removals of bytes that a process had begun which is dead by now. Does nothing if it may be alive. */
  finishRemovals(): Promise<void>;
}

/** What may be done in a repository. */
export type RepositoryAction = RepositoryAccess['actions'][number];

/**
 * What a caller needs for a route: any one of these actions in its repository, the list of its account's repositories
 * (`catalog`), or nothing but to be known (`any`).
 */
export type Right = readonly RepositoryAction[] | 'catalog' | 'any';

/** Who asks. */
export interface Caller {
  /** The account or node; empty for an anonymous grant. */
  readonly subject: string;
  readonly by: 'grant' | 'login';
  /** By its own right. Whether a repository is public is another question: `mayPull` asks both. */
  may(repository: string, action: RepositoryAction): boolean;
  /** Whether it may mount blobs of a repository by its own right, beside those it may pull from. */
  mayMountFrom(repository: string): boolean;
  /** Whether it may list the repositories of its account. */
  readonly mayList: boolean;
}

/** One request on its way through. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  /** What the request's log line tells beside the operation. */
  readonly facts: { subject?: string };
}

/** A request by someone who may do what it asks for. */
export interface GrantedExchange extends Exchange {
  readonly caller: Caller;
}
