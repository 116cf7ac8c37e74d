/** The open connections to this node's backends, as reported by the proxies. A report expires when its proxy is silent. */
import { proxySilentAfterMs } from '../../contract/messages.ts';

interface Proxy {
  /** When it reported first, or last reported all its connections. */
  readonly heardAt: Date;
  /** When it last reported all its connections. */
  readonly reportedAt?: Date;
  readonly open: Set<string>;
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
    const ours = new Set(Object.keys(open).filter((backend) => isAny(open[backend]) && this.#isOurs(backend)));
    this.#proxies.set(proxy, { heardAt: now, reportedAt: now, open: ours });
    this.#reportedSince ??= now;
    for (const backend of before ?? []) if (!ours.has(backend)) this.#recordClosed(backend, now);
  }

  /**
   * Records which backends have got their first connection through a proxy, or lost their last. This does not show which others are
   * open, so it does not change the time until which idle backends are judged.
   */
  change(proxy: string, changes: Readonly<Record<string, number>>, now: Date): void {
    this.expireSilent(now);
    const known = this.#proxies.get(proxy) ?? { heardAt: now, open: new Set() };
    this.#proxies.set(proxy, known);
    for (const [backend, count] of Object.entries(changes)) {
      if (isAny(count) && this.#isOurs(backend)) known.open.add(backend);
      else if (known.open.delete(backend)) this.#recordClosed(backend, now);
    }
  }

  /** Removes the proxies that have been silent for too long, with their connections. */
  expireSilent(now: Date): void {
    for (const [proxy, { heardAt, open }] of this.#proxies) {
      if (now.getTime() - heardAt.getTime() < proxySilentAfterMs) continue;
      this.#proxies.delete(proxy);
      for (const backend of open) this.#recordClosed(backend, now);
    }
    if (this.#proxies.size === 0) this.#reportedSince = undefined;
  }

  /** Since when at least one proxy has reported without a gap; `undefined` while none does. */
  get reportedSince(): Date | undefined {
    return this.#reportedSince;
  }

  /** The time until which every known proxy has reported; `undefined` while there is none, or a proxy has reported only changes. */
  get reportedUntil(): Date | undefined {
    const times = Array.from(this.#proxies.values(), ({ reportedAt }) => reportedAt?.getTime());
    const known = times.filter((time) => time !== undefined);
    return known.length === 0 || known.length < times.length ? undefined : new Date(Math.min(...known));
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
  #recordClosed(backend: string, now: Date): void {
    if (this.#isOurs(backend)) this.#closedAt.set(backend, now);
  }
}

function isAny(count: number | undefined): boolean {
  return count !== undefined && count > 0;
}
