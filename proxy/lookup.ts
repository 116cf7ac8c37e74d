/** Looking up what a connection token stands for and where its backend is, with a short memory. */
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
import { ProxyFailure } from './failure.ts';

/** Where a backend listens. The address is one of its node's own network. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly node?: string;
}

/** What matters about a backend to whoever wants to reach it. */
export type Whereabouts =
  | { readonly state: 'reachable'; readonly address: Address }
  | { readonly state: 'starting'; readonly createdAt: Date }
  | { readonly state: 'gone'; readonly wasReady: boolean };

/**
 * How long an entry is used without reading it again. The bus tells of changes at once but may lose a message: then an ended
 * backend is asked in vain for two seconds, and nothing worse, since nodes do not give an address out again that soon. One
 * read per backend every two seconds costs nothing.
 */
export const trustMs = 2_000;

/** A store that has not answered by then does not answer: the client learns it and may try again. */
export const readLimitMs = 5_000;

/** Entries of a few hundred bytes: some ten megabytes at most, and more than a node or ten run. */
const maxEntries = 20_000;

interface Entry<T> {
  readonly value: T;
  readonly readAtMs: number;
}

/** Routes and backends as the store has them, remembered for `trustMs` at most. */
export class Lookup {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onGone: (backend: string) => void;
  readonly #routes = new LRUCache<string, Entry<Route>>({ max: maxEntries });
  readonly #backends = new LRUCache<string, Entry<Whereabouts>>({ max: maxEntries });
  readonly #gateways = new LRUCache<string, Entry<Promise<NodeGateway | undefined>>>({ max: maxEntries });
  readonly #reading = new Map<string, Promise<Whereabouts>>();

  /** `onGone` is told each time a backend is found to have ended. */
  constructor(deps: { store: Store; clock: Clock; onGone: (backend: string) => void }) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#onGone = deps.onGone;
  }

  /** The route of a connection token, `undefined` if there is none. Throws `unavailable`. */
  async route(token: string): Promise<Route | undefined> {
    const id = hashToken(token);
    const known = this.#trusted(this.#routes.get(id));
    if (known) return known;
    const route = await this.#read(() => this.#store.get(routes, id));
    if (route) this.#routes.set(id, this.#entry(route));
    else this.#routes.delete(id);
    return route;
  }

  /** Where a backend is, as far as is known. Throws `unavailable`. */
  async whereabouts(backend: string): Promise<Whereabouts> {
    return this.#trusted(this.#backends.get(backend)) ?? (await this.refresh(backend));
  }

  /** Where a backend is, read anew; whoever asks meanwhile shares the read. Throws `unavailable`. */
  refresh(backend: string): Promise<Whereabouts> {
    const underWay = this.#reading.get(backend);
    if (underWay) return underWay;
    const reading: Promise<Whereabouts> = this.#readWhereabouts(backend, () => this.#reading.get(backend) === reading);
    this.#reading.set(backend, reading);
    return reading;
  }

  /** The gateway of a node, `undefined` if it has none. Throws `unavailable`. */
  gateway(node: string): Promise<NodeGateway | undefined> {
    return this.#trusted(this.#gateways.get(node)) ?? this.refreshGateway(node);
  }

  /** The gateway of a node, read anew. Throws `unavailable`. */
  refreshGateway(node: string): Promise<NodeGateway | undefined> {
    const entry = this.#entry(this.#read(async () => (await this.#store.get(nodes, node))?.gateway));
    this.#gateways.set(node, entry);
    entry.value.catch(() => {
      if (this.#gateways.get(node) === entry) this.#gateways.delete(node);
    });
    return entry.value;
  }

  /** Something changed about a backend: what is known about it counts no more, nor does what is being read just now. */
  forget(backend: string): void {
    this.#backends.delete(backend);
    this.#reading.delete(backend);
  }

  async #readWhereabouts(backend: string, stillCounts: () => boolean): Promise<Whereabouts> {
    let found: Whereabouts | undefined;
    try {
      found = whereaboutsOf(await this.#read(() => this.#store.get(backends, backend)));
      if (found.state === 'gone') this.#onGone(backend);
      return found;
    } finally {
      if (stillCounts()) {
        this.#reading.delete(backend);
        // A backend that starts changes any moment: it is read anew each time.
        if (found && found.state !== 'starting') this.#backends.set(backend, this.#entry(found));
      }
    }
  }

  async #read<T>(get: () => Promise<T>): Promise<T> {
    const limit = { clock: this.#clock, ms: readLimitMs, message: 'The store does not answer' };
    try {
      return await withTimeout(limit, get);
    } catch (error) {
      throw new ProxyFailure('unavailable', { cause: error });
    }
  }

  #entry<T>(value: T): Entry<T> {
    return { value, readAtMs: this.#clock.now().getTime() };
  }

  #trusted<T>(entry: Entry<T> | undefined): T | undefined {
    if (!entry) return undefined;
    const ageMs = this.#clock.now().getTime() - entry.readAtMs;
    // A clock that was set back would make an entry young for ever.
    return ageMs >= 0 && ageMs < trustMs ? entry.value : undefined;
  }
}

function whereaboutsOf(backend: Backend | undefined): Whereabouts {
  const gone = { state: 'gone', wasReady: !backend || backend.readyAt !== undefined } as const;
  if (!backend?.live) return gone;
  if (backend.address) {
    const { address, node } = backend;
    return { state: 'reachable', address: node === undefined ? address : { ...address, node } };
  }
  // On its way out before it was ready: it never will be.
  return isEnding(backend) ? gone : { state: 'starting', createdAt: backend.createdAt };
}
