/** Looks up the route of a connection token and the location of a backend. Caches both for a short time. */
import { newLruCache } from '../core/async/lru-cache.ts';
import { withTimeout } from '../core/async/with-timeout.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { backends, isEnding } from '../model/backend.ts';
import type { Backend, BackendAddress } from '../model/backend.ts';
import { nodes } from '../model/node.ts';
import type { NodeGateway } from '../model/node.ts';
import { routeId, routes } from '../model/route.ts';
import type { Route } from '../model/route.ts';
import { ProxyError, goneError } from './errors.ts';
import { CachedReads } from './cached-reads.ts';
import type { Result } from './cached-reads.ts';

/** Where a backend listens. The address belongs to the network of its node. */
export interface Address extends BackendAddress {
  readonly node?: string;
}

/** Where a backend is reachable, or why it is not. */
export type BackendLocation =
  | { readonly state: 'reachable'; readonly address: Address }
  | { readonly state: 'starting'; readonly createdAt: Date; readonly node?: string | undefined }
  | { readonly state: 'gone'; readonly wasReady: boolean };

/** A route whose backend is reachable. */
export interface Reachable {
  readonly route: Route;
  readonly address: Address;
  /** The cached results; absent if they were not cached. */
  readonly from?: { readonly route: Result<Route>; readonly location: Result<BackendLocation> };
}

/**
 * How long an entry is used without being read again or confirmed. The bus reports changes at once but may lose a message: then the
 * proxy uses an ended backend or a moved route for up to a second.
 */
export const trustMs = 1_000;

/** How long a confirmed entry is used at most. With 100,000 routes in use, that is 200 reads a second. */
export const maxKeptMs = 15 * 60 * 1000;

/** A store that takes longer counts as unavailable, and the client may retry. */
export const readLimitMs = 5_000;

/** More than any proxy uses at a time. Each takes about a kilobyte. */
const maxEntries = 200_000;

/** A period in which no route or backend has changed, except those whose entries were dropped. */
export interface Confirmation {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Routes and locations from the store, cached while they are valid. Reads throw `unavailable` if the store fails. */
export class Lookup {
  readonly #clock: Clock;
  readonly #routes: CachedReads<Route>;
  readonly #locations: CachedReads<BackendLocation>;
  readonly #gateways: CachedReads<NodeGateway>;
  /** Hashes of tokens, because computing a hash is a large part of the cost of a small request. */
  readonly #ids = newLruCache<string>(maxEntries);
  readonly #services = newLruCache<string>(maxEntries);
  #confirmed: Confirmation = { fromMs: Infinity, untilMs: -Infinity };

  /** `onGone` is called each time a read finds that a backend has ended. */
  constructor({ store, clock, onGone }: { store: Store; clock: Clock; onGone: (backend: string) => void }) {
    this.#clock = clock;
    const shared = { clock, trustMs, maxEntries };
    const isConfirmed = (readAtMs: number, nowMs: number) => this.#isConfirmed(readAtMs, nowMs);
    this.#routes = new CachedReads({
      ...shared,
      lasting: { maxMs: maxKeptMs, includes: () => true, isConfirmed },
      read: async (id) => await this.#limited(() => store.get(routes, id)),
    });
    this.#locations = new CachedReads({
      ...shared,
      read: async (id) => {
        const backend = await this.#limited(() => store.get(backends, id));
        if (backend) this.#services.set(id, `${backend.account}/${backend.service}`);
        const found = locationOf(backend);
        if (found.state === 'gone') onGone(id);
        return found;
      },
      // The location of a starting backend changes at any moment, so it is read each time.
      isKept: ({ state }) => state !== 'starting',
      lasting: { maxMs: maxKeptMs, includes: ({ state }) => state === 'reachable', isConfirmed },
    });
    this.#gateways = new CachedReads({
      ...shared,
      read: async (id) => (await this.#limited(() => store.get(nodes, id)))?.gateway,
    });
  }

  /** The route of a connection token and the address of its backend, if both are known without a read. */
  known(token: string): Reachable | undefined {
    const route = this.#routes.known(this.#idOf(token));
    const location = route?.value && this.#locations.known(route.value.backend);
    if (!route?.value || location?.value?.state !== 'reachable') return undefined;
    return { route: route.value, address: location.value.address, from: { route, location } };
  }

  /** Whether a result of `known` is still valid. */
  isCurrent({ from }: Reachable, nowMs: number): boolean {
    if (!from) return false;
    return this.#routes.isCurrent(from.route, nowMs) && this.#locations.isCurrent(from.location, nowMs);
  }

  /** The route of a connection token, `undefined` if there is none. */
  async route(token: string): Promise<Route | undefined> {
    const id = this.#idOf(token);
    const known = this.#routes.known(id);
    return known ? known.value : await this.#routes.read(id);
  }

  /** Reads the route of a connection token. */
  async refreshRoute(token: string): Promise<Route | undefined> {
    const id = routeId(token);
    // A read in progress may have begun before the change that the caller looks for.
    this.#routes.forget(id);
    return await this.#routes.read(id);
  }

  /** Drops the entry of a route that was written, by its ID, and the result of a read in progress. */
  forgetRoute(id: string): void {
    this.#routes.forget(id);
  }

  /** Drops the location of a backend that has ended, unless the entry is `gone` already. */
  forgetEnded(backend: string): void {
    if (this.#locations.known(backend)?.value?.state !== 'gone') this.#locations.forget(backend);
  }

  /** Whether there is no entry to confirm. */
  get isEmpty(): boolean {
    return this.#routes.isEmpty && this.#locations.isEmpty;
  }

  /** Extends the use of all entries that were read since the start of a period to `trustMs` after its end. */
  confirm(period: Confirmation): void {
    this.#confirmed = period;
  }

  /** The location of a backend. */
  async location(backend: string): Promise<BackendLocation> {
    return this.#locations.known(backend)?.value ?? (await this.refresh(backend));
  }

  /** Reads the location of a backend. Concurrent callers share the read. */
  async refresh(backend: string): Promise<BackendLocation> {
    return (await this.#locations.read(backend)) ?? locationOf(undefined);
  }

  /** Drops the location of a backend that has changed, and the result of a read in progress. */
  forget(backend: string): void {
    this.#locations.forget(backend);
  }

  /** The service of a backend whose location was read recently, `<account>/<service>`. */
  serviceOf(backend: string): string | undefined {
    return this.#services.get(backend);
  }

  /** The gateway of a node, `undefined` if it has none. */
  async gateway(node: string): Promise<NodeGateway | undefined> {
    const known = this.#gateways.known(node);
    return known ? known.value : await this.#gateways.read(node);
  }

  /** Reads the gateway of a node. */
  async refreshGateway(node: string): Promise<NodeGateway | undefined> {
    return await this.#gateways.read(node);
  }

  /** The reason why a backend could not be reached: it may have ended before the message about it has arrived. */
  async explain(backend: string, error: ProxyError): Promise<ProxyError> {
    if (error.code !== 'backend-unreachable') return error;
    this.forget(backend);
    const found = await this.refresh(backend);
    return found.state === 'gone' ? goneError(found.wasReady, { cause: error }) : error;
  }

  #isConfirmed(readAtMs: number, nowMs: number): boolean {
    const { fromMs, untilMs } = this.#confirmed;
    return readAtMs >= fromMs && nowMs >= untilMs && nowMs - untilMs < trustMs;
  }

  #idOf(token: string): string {
    const known = this.#ids.get(token);
    if (known !== undefined) return known;
    const id = routeId(token);
    this.#ids.set(token, id);
    return id;
  }

  async #limited<T>(get: () => Promise<T>): Promise<T> {
    const limit = { clock: this.#clock, ms: readLimitMs, message: 'The store does not answer' };
    try {
      return await withTimeout(limit, get);
    } catch (error) {
      throw new ProxyError('unavailable', { cause: error });
    }
  }
}

/** The node of a backend, if it is known. */
export function nodeOf(location: BackendLocation): string | undefined {
  if (location.state === 'gone') return undefined;
  return location.state === 'reachable' ? location.address.node : location.node;
}

function locationOf(backend: Backend | undefined): BackendLocation {
  const gone = { state: 'gone', wasReady: !backend || backend.readyAt !== undefined } as const;
  if (!backend?.live) return gone;
  if (backend.address) {
    const { address, node } = backend;
    return { state: 'reachable', address: node === undefined ? address : { ...address, node } };
  }
  // A backend that is stopped before it is ready will never be ready.
  return isEnding(backend) ? gone : { state: 'starting', createdAt: backend.createdAt, node: backend.node };
}
