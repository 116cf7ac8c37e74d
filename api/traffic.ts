/** The traffic of backends, from what the proxies have stored. */
import type { Store } from '../core/store/store.ts';
import { proxies, sumTraffic, traffic } from '../model/traffic.ts';
import type { TrafficSum } from '../model/traffic.ts';

/** Adds up the traffic of a backend. */
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
