/** A node for tests of the proxy: the real gateway of a worker, with programs on loopback in place of containers. */
import { backendChanged } from '../../contract/messages.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { upsert } from '../../core/store/upsert.ts';
import { backends, becomeReady } from '../../model/backend.ts';
import { nodes } from '../../model/node.ts';
import type { Node } from '../../model/node.ts';
import { openGateway } from '../../worker/gateway/gateway.ts';
import { Run } from '../../worker/lifecycle/run.ts';
import { Statuses } from '../../worker/lifecycle/statuses.ts';
import type { Fixture, Program } from './fixture.ts';

export interface TestNode extends AsyncDisposable {
  readonly id: string;
  /** The port of its gateway. */
  readonly port: number;
  /** Makes a backend ready on this node. Its address is reachable only through the gateway. */
  adopt(backend: string, at: Pick<Program, 'address'>): Promise<void>;
  /** Removes a backend from this node. */
  end(backend: string): void;
}

/** An address for documentation, which no host has (RFC 5737). */
const unreachableAddress = { host: '192.0.2.1', port: 8080 };

/** Starts a node and inserts it into the store. */
export async function startNode(fixture: Fixture, { id = 'node-1', secret = fixture.secret } = {}): Promise<TestNode> {
  const closing = new AbortController();
  const log = silentLog();
  const { store, bus } = fixture;
  const runs = new Map<string, Run>();
  const parts = { runs, clock: systemClock, log, closing: closing.signal };
  const gateway = await openGateway(parts, {
    settings: { host: '127.0.0.1', port: 0, advertisedHost: '127.0.0.1' },
    secret,
    answer: async (_request, response) => void response.writeHead(404).end(),
  });
  gateway.open();
  await insertNode(fixture, { id, gateway: gateway.address });
  const adopt = async (backend: string, { address }: Pick<Program, 'address'>) => {
    const document = await store.update(backends, backend, (current) =>
      becomeReady({ ...current, node: id }, unreachableAddress, new Date()),
    );
    if (!document) throw new Error(`No backend ${backend}`);
    const statuses = new Statuses({ store, bus, clock: systemClock, log }, backend, closing.signal);
    const run = new Run(document, { statuses, closing: closing.signal });
    run.useAddress(address.host);
    run.usePort(address.port);
    run.containerStarted(backend);
    runs.set(backend, run);
    await bus.publish(backendChanged, { backend, status: 'ready' });
  };
  return {
    id,
    port: gateway.address.port,
    adopt,
    end: (backend) => {
      runs.get(backend)?.finish();
      runs.delete(backend);
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

/** Inserts a node into the store. */
export async function insertNode({ store }: Fixture, about: Pick<Node, 'id' | 'gateway'>): Promise<void> {
  const now = new Date();
  const node: Node = { cluster: 'default', leaseUntil: now, startedAt: now, engineVersion: '', ...about };
  await upsert(store, nodes, node.id, () => node);
}
