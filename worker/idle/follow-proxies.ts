/** Follows the reports of proxies about open connections to the backends of this node. */
import { connectionsOf, proxyHeartbeat } from '../../contract/messages.ts';
import type { Bus } from '../../core/bus/bus.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Connections } from './connections.ts';

interface FollowDeps {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly node: string;
}

/**
 * Records the proxies' reports until disposed. A heartbeat that names this node is ignored: the report that the proxy published
 * before it may have been lost.
 */
export async function followProxies(
  connections: Connections,
  { bus, clock, node }: FollowDeps,
): Promise<AsyncDisposable> {
  await using following = new AsyncDisposableStack();
  following.use(
    await bus.subscribe(connectionsOf(node), ({ proxy, isWhole, open }) => {
      if (isWhole) connections.report(proxy, open, clock.now());
      else connections.change(proxy, open, clock.now());
    }),
  );
  following.use(
    await bus.subscribe(proxyHeartbeat, ({ proxy, nodes }) => {
      if (!nodes.includes(node)) connections.report(proxy, {}, clock.now());
    }),
  );
  return following.move();
}
