/** Reports the statuses, connections and logs of backends. */
import type { BerthClient } from '../../client/index.ts';
import type { StatusEntryObject } from '../../contract/backend.ts';
import { backendChanged, connectionsOf, proxyHeartbeat } from '../../contract/messages.ts';
import type { BackendStatus } from '../../contract/statuses.ts';
import type { Bus } from '../../core/bus/bus.ts';
import { KeyedMutex } from '../../core/async/keyed-mutex.ts';
import type { Report } from './report.ts';

interface Following {
  /** All backends run on its node. */
  readonly platform: { readonly bus: Bus; readonly node: string };
  readonly client: BerthClient;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Reports every backend until disposed. */
export async function followBackends(options: Following): Promise<AsyncDisposable> {
  const followed = new FollowedBackends(options);
  const { bus, node } = options.platform;
  const following = new AsyncDisposableStack();
  following.use(await bus.subscribe(backendChanged, ({ backend, status }) => followed.change(backend, status)));
  // The only proxy sends these messages.
  following.use(
    await bus.subscribe(connectionsOf(node), ({ open, isWhole }) => followed.changeConnections(open, { isWhole })),
  );
  following.use(
    await bus.subscribe(proxyHeartbeat, ({ nodes }) => {
      if (!nodes.includes(node)) followed.changeConnections({}, { isWhole: true });
    }),
  );
  return following;
}

class FollowedBackends {
  readonly #options: Following;
  /** The last reported status of each running backend. */
  readonly #reported = new Map<string, BackendStatus>();
  /** The last reported number of connections of each backend, without zeros. */
  #open = new Map<string, number>();
  /** Keeps the reported statuses of a backend in order. */
  readonly #order = new KeyedMutex();

  constructor(options: Following) {
    this.#options = options;
  }

  change(backend: string, status: BackendStatus): void {
    const { signal, report } = this.#options;
    if (this.#reported.get(backend) === status) return;
    if (!this.#reported.has(backend)) void this.#followLog(backend);
    this.#reported.set(backend, status);
    void this.#order
      .run(backend, async () => {
        const { key, statuses } = await this.#options.client.backend(backend, { signal });
        const entry = statuses.findLast((each) => each.status === status);
        report({ event: 'backend', backend, key: key ?? null, status, details: detailsOf(key, entry) });
      })
      .catch(() => {})
      .finally(() => {
        if (status === 'terminated') this.#reported.delete(backend);
      });
  }

  /** Reports changed counts. With `isWhole`, a backend that is not in `open` has no connections. */
  changeConnections(open: Readonly<Record<string, number>>, { isWhole }: { isWhole: boolean }): void {
    const before = this.#open;
    this.#open = new Map(isWhole ? [] : before);
    for (const [backend, count] of Object.entries(open)) {
      if (count > 0) this.#open.set(backend, count);
      else this.#open.delete(backend);
    }
    for (const backend of new Set([...before.keys(), ...this.#open.keys()])) {
      const count = this.#open.get(backend) ?? 0;
      if (count !== (before.get(backend) ?? 0)) this.#options.report({ event: 'connections', backend, open: count });
    }
  }

  async #followLog(backend: string): Promise<void> {
    const { client, report, signal } = this.#options;
    try {
      for await (const { line } of client.logs(backend, { signal })) report({ event: 'log', backend, line });
    } catch {
      // The development server is stopping.
    }
  }
}

function detailsOf(key: string | null | undefined, entry: StatusEntryObject | undefined): string {
  const code = entry && 'exit_code' in entry ? entry.exit_code : undefined;
  const reason = entry && 'termination_reason' in entry ? entry.termination_reason : undefined;
  return [
    ...(key ? [`key ${JSON.stringify(key)}`] : []),
    ...(reason ? [reason] : []),
    ...(typeof code === 'number' ? [`exit code ${code}`] : []),
  ].join(', ');
}
