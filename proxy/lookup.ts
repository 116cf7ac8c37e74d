/** Looks up the route of a connection token and the location of a backend. Remembers both for a short time. */
import { LRUCache } from 'lru-cache';
import { withTimeout } from '../core/async/with-timeout.ts';
import type { Clock } from '../core/clock/clock.ts';
import type { Store } from '../core/store/store.ts';
import { hashToken } from '../model/access-token.ts';
import { backends, isEnding } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { nodes } from '../model/node.ts';
import type { NodeGateway } from '../model/node.ts';
import { routes } from '../model/route.ts';
import type { Route } from '../model/route.ts';
import { ProxyError } from './errors.ts';

/** Where a backend listens. The address belongs to the network of its node. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly node?: string;
}

/** Where a backend is reachable, or why it is not. */
export type BackendLocation =
  | { readonly state: 'reachable'; readonly address: Address }
  | { readonly state: 'starting'; readonly createdAt: Date }
  | { readonly state: 'gone'; readonly wasReady: boolean };

/**
 * How long an entry is used without another read. The bus reports changes at once but may lose a message. Then requests to an ended
 * backend fail for two seconds, which is harmless, because nodes do not assign an address again that soon. One read per backend
 * every two seconds costs almost nothing.
 */
export const trustMs = 2_000;

/** A store that takes longer counts as unavailable, and the client may retry. */
export const readLimitMs = 5_000;

/** At a few hundred bytes each, some ten megabytes at most, for more backends than ten nodes run. */
const maxEntries = 20_000;

interface Entry<T> {
  readonly value: T;
  readonly readAtMs: number;
}

/** Routes and locations from the store, remembered for `trustMs` at most. Reads throw `unavailable` if the store fails. */
export class Lookup {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onGone: (backend: string) => void;
  readonly #routes = new LRUCache<string, Entry<Route>>({ max: maxEntries });
  readonly #locations = new LRUCache<string, Entry<BackendLocation>>({ max: maxEntries });
  readonly #gateways = new LRUCache<string, Entry<Promise<NodeGateway | undefined>>>({ max: maxEntries });
  readonly #reading = new Map<string, Promise<BackendLocation>>();

  /** `onGone` is called each time a read finds that a backend has ended. */
  constructor(deps: { store: Store; clock: Clock; onGone: (backend: string) => void }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#onGone = deps.onGone;
  }

  /** The route of a connection token, `undefined` if there is none. */
  async route(token: string): Promise<Route | undefined> {
    const id = hashToken(token);
    return this.#trusted(this.#routes.get(id)) ?? (await this.#readRoute(id));
  }

  /** Reads the route of a connection token. */
  async refreshRoute(token: string): Promise<Route | undefined> {
    return await this.#readRoute(hashToken(token));
  }

  /** Drops a route that leads to another backend now, by its ID. */
  forgetRoute(id: string): void {
    this.#routes.delete(id);
  }

  async #readRoute(id: string): Promise<Route | undefined> {
    const route = await this.#read(() => this.#store.get(routes, id));
    if (route) this.#routes.set(id, this.#entry(route));
    else this.#routes.delete(id);
    return route;
  }

  /** The location of a backend. */
  async location(backend: string): Promise<BackendLocation> {
    return this.#trusted(this.#locations.get(backend)) ?? (await this.refresh(backend));
  }

  /** Reads the location of a backend. Concurrent callers share the read. */
  refresh(backend: string): Promise<BackendLocation> {
    const inProgress = this.#reading.get(backend);
    if (inProgress) return inProgress;
    const reading: Promise<BackendLocation> = this.#readLocation(backend, () => this.#reading.get(backend) === reading);
    this.#reading.set(backend, reading);
    return reading;
  }

  /** The gateway of a node, `undefined` if it has none. */
  gateway(node: string): Promise<NodeGateway | undefined> {
    return this.#trusted(this.#gateways.get(node)) ?? this.refreshGateway(node);
  }

  /** Reads the gateway of a node. */
  refreshGateway(node: string): Promise<NodeGateway | undefined> {
    const entry = this.#entry(this.#read(async () => (await this.#store.get(nodes, node))?.gateway));
    this.#gateways.set(node, entry);
    entry.value.catch(() => {
      if (this.#gateways.get(node) === entry) this.#gateways.delete(node);
    });
    return entry.value;
  }

  /** Drops the location of a backend that has changed, and the result of a read in progress. */
  forget(backend: string): void {
    this.#locations.delete(backend);
    this.#reading.delete(backend);
  }

  async #readLocation(backend: string, isCurrent: () => boolean): Promise<BackendLocation> {
    let found: BackendLocation | undefined;
    try {
      found = locationOf(await this.#read(() => this.#store.get(backends, backend)));
      if (found.state === 'gone') this.#onGone(backend);
      return found;
    } finally {
      if (isCurrent()) {
        this.#reading.delete(backend);
        // The location of a starting backend changes at any moment, so it is read each time.
        if (found && found.state !== 'starting') this.#locations.set(backend, this.#entry(found));
      }
    }
  }

  async #read<T>(get: () => Promise<T>): Promise<T> {
    const limit = { clock: this.#clock, ms: readLimitMs, message: 'The store does not answer' };
    try {
      return await withTimeout(limit, get);
    } catch (error) {
      throw new ProxyError('unavailable', { cause: error });
    }
  }

  #entry<T>(value: T): Entry<T> {
    return { value, readAtMs: this.#clock.now().getTime() };
  }

  #trusted<T>(entry: Entry<T> | undefined): T | undefined {
    if (!entry) return undefined;
    const ageMs = this.#clock.now().getTime() - entry.readAtMs;
    // A negative age means that the clock was set back. Such an entry would otherwise be trusted for too long.
    return ageMs >= 0 && ageMs < trustMs ? entry.value : undefined;
  }
}

function locationOf(backend: Backend | undefined): BackendLocation {
  const gone = { state: 'gone', wasReady: !backend || backend.readyAt !== undefined } as const;
  if (!backend?.live) return gone;
  if (backend.address) {
    const { address, node } = backend;
    return { state: 'reachable', address: node === undefined ? address : { ...address, node } };
  }
  // A backend that is stopped before it is ready will never be ready.
  return isEnding(backend) ? gone : { state: 'starting', createdAt: backend.createdAt };
}
