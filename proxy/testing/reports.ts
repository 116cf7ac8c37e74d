/** Records the open connections that a proxy reports to the nodes. */
import { connectionsOf, proxyHeartbeat } from '../../contract/messages.ts';
import type { Bus } from '../../core/bus/bus.ts';

const reportPrefix = connectionsOf('').name;

/** A bus that, after each report of a proxy, adds the open connections of all backends to a list. */
export function recordingBus(bus: Bus, reports: Record<string, number>[]): Bus {
  const nodes = new Map<string, Record<string, number>>();
  const publish: Bus['publish'] = async (topic, message) => {
    await bus.publish(topic, message);
    if (topic.name.startsWith(reportPrefix)) {
      const { open, isWhole } = connectionsOf('').message.parse(message);
      const node = topic.name.slice(reportPrefix.length);
      nodes.set(node, withoutZeros(isWhole ? open : { ...nodes.get(node), ...open }));
    } else if (topic.name === proxyHeartbeat.name) {
      const { nodes: named } = proxyHeartbeat.message.parse(message);
      for (const node of nodes.keys()) if (!named.includes(node)) nodes.delete(node);
    } else return;
    reports.push(Object.assign({}, ...nodes.values()) as Record<string, number>);
  };
  return {
    publish,
    ping: () => bus.ping(),
    subscribe: (topic, listener) => bus.subscribe(topic, listener),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

function withoutZeros(open: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(open).filter(([, count]) => count > 0));
}
