/** The traffic of backends, as counted by the proxies. */
import type { Collection, Store } from '../core/store/store.ts';

/**
 * The traffic of a backend that a proxy has counted since it began this document. No other process writes it. A proxy that has forgotten
 * a quiet backend, or has restarted, begins another document, so the traffic of a backend is the sum of its documents.
 */
export interface Traffic {
  readonly id: string;
  readonly backend: string;
  readonly proxy: string;
  /** Requests that have ended. */
  readonly requests: number;
  /** From clients. */
  readonly receivedBytes: number;
  /** To clients. */
  readonly sentBytes: number;
  /** How many were open when this was written. They count while the proxy is alive. */
  readonly openConnections: number;
  readonly writtenAt: Date;
}

export const traffic: Collection<Traffic, 'byBackend'> = { name: 'traffic', indexes: { byBackend: ['backend'] } };

/** A proxy that has open connections. */
export interface ProxyPresence {
  readonly id: string;
  /** Until when it counts as alive without another write. */
  readonly aliveUntil: Date;
}

export const proxies: Collection<ProxyPresence, 'byEnd'> = { name: 'proxies', indexes: { byEnd: ['aliveUntil'] } };

/** How often a proxy writes changed counts: rarely enough that thousands of busy backends do not load the store. */
export const trafficWriteMs = 10_000;

/** A proxy that has written nothing for this long is dead, and its connections are closed. */
export const proxyAliveMs = 35_000;

export interface TrafficSum extends Pick<Traffic, 'requests' | 'receivedBytes' | 'sentBytes' | 'openConnections'> {
  /** When the latest part of it was written; `undefined` if there is none. */
  readonly writtenAt: Date | undefined;
}

/** The traffic of a backend, from what the proxies have stored. */
export async function trafficOf(store: Store, backend: string): Promise<TrafficSum> {
  const documents = await store.find(traffic, { index: 'byBackend', equals: { backend } });
  const withOpen = new Set(documents.flatMap(({ proxy, openConnections }) => (openConnections > 0 ? [proxy] : [])));
  const [now, ...presences] = await Promise.all([
    store.now(),
    ...Array.from(withOpen, async (proxy) => await store.get(proxies, proxy)),
  ]);
  const alive = new Set(presences.flatMap((each) => (each && now < each.aliveUntil ? [each.id] : [])));
  return sumTraffic(documents, (proxy) => alive.has(proxy));
}

/** Adds up the documents of a backend. Connections count only if their proxy is alive. */
export function sumTraffic(documents: readonly Traffic[], isAlive: (proxy: string) => boolean): TrafficSum {
  const sum = { requests: 0, receivedBytes: 0, sentBytes: 0, openConnections: 0 };
  let writtenMs = -Infinity;
  for (const { proxy, requests, receivedBytes, sentBytes, openConnections, writtenAt } of documents) {
    sum.requests += requests;
    sum.receivedBytes += receivedBytes;
    sum.sentBytes += sentBytes;
    if (isAlive(proxy)) sum.openConnections += openConnections;
    writtenMs = Math.max(writtenMs, writtenAt.getTime());
  }
  return { ...sum, writtenAt: documents.length === 0 ? undefined : new Date(writtenMs) };
}
