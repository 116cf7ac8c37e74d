/** The open connections to this node's backends, as reported by the proxies. A report expires when its proxy is silent. */
import { proxySilentAfterMs } from '../../contract/messages.ts';

interface Proxy {
  readonly reportedAt: Date;
  readonly open: ReadonlySet<string>;
}

export class Connections {
  readonly #isOurs: (backend: string) => boolean;
  readonly #proxies = new Map<string, Proxy>();
  readonly #closedAt = new Map<string, Date>();
  #reportedSince: Date | undefined;

  /** @param isOurs - whether a backend runs here; reports about other backends are ignored */
  constructor(isOurs: (backend: string) => boolean) {
    this.#isOurs = isOurs;
  }

  /** Records a proxy's report of all its open connections. */
  report(proxy: string, open: Readonly<Record<string, number>>, now: Date): void {
    this.expireSilent(now);
    const before = this.#proxies.get(proxy)?.open;
    const ours = new Set(Object.keys(open).filter(this.#isOurs));
    this.#proxies.set(proxy, { reportedAt: now, open: ours });
    this.#reportedSince ??= now;
    for (const backend of before ?? []) if (!ours.has(backend)) this.#noteClosed(backend, now);
  }

  /** Removes the proxies that have been silent for too long, with their connections. */
  expireSilent(now: Date): void {
    for (const [proxy, { reportedAt, open }] of this.#proxies) {
      if (now.getTime() - reportedAt.getTime() < proxySilentAfterMs) continue;
      this.#proxies.delete(proxy);
      for (const backend of open) this.#noteClosed(backend, now);
    }
    if (this.#proxies.size === 0) this.#reportedSince = undefined;
  }

  /** Since when at least one proxy has reported without a gap; `undefined` while none does. */
  get reportedSince(): Date | undefined {
    return this.#reportedSince;
  }

  /** The time until which every known proxy has reported; `undefined` while there is none. */
  get reportedUntil(): Date | undefined {
    const times = Array.from(this.#proxies.values(), ({ reportedAt }) => reportedAt.getTime());
    return times.length === 0 ? undefined : new Date(Math.min(...times));
  }

  isOpen(backend: string): boolean {
    for (const { open } of this.#proxies.values()) if (open.has(backend)) return true;
    return false;
  }

  /** When the last known connection to a backend closed. */
  closedAt(backend: string): Date | undefined {
    return this.#closedAt.get(backend);
  }

  /** Removes a backend that has ended. */
  delete(backend: string): void {
    this.#closedAt.delete(backend);
  }

  /** Ignores connections that close after their backend has ended. */
  #noteClosed(backend: string, now: Date): void {
    if (this.#isOurs(backend)) this.#closedAt.set(backend, now);
  }
}
