/** Who is connected to this node's backends, as far as the proxies have told. Soft facts, forgotten when a proxy is silent. */
import { proxySilentAfterMs } from '../../contract/messages.ts';

interface Proxy {
  readonly heardAt: Date;
  readonly open: ReadonlySet<string>;
}

export class Connections {
  readonly #isOurs: (backend: string) => boolean;
  readonly #proxies = new Map<string, Proxy>();
  readonly #closedAt = new Map<string, Date>();
  #hearingSince: Date | undefined;

  /** @param isOurs - whether a backend runs here; of others nothing is kept */
  constructor(isOurs: (backend: string) => boolean) {
    this.#isOurs = isOurs;
  }

  /** A proxy told all that is open through it. */
  hear(proxy: string, open: Readonly<Record<string, number>>, now: Date): void {
    this.forgetSilent(now);
    const before = this.#proxies.get(proxy)?.open;
    const ours = new Set(Object.keys(open).filter(this.#isOurs));
    this.#proxies.set(proxy, { heardAt: now, open: ours });
    this.#hearingSince ??= now;
    for (const backend of before ?? []) if (!ours.has(backend)) this.#noteClosed(backend, now);
  }

  /** Forgets proxies that have not been heard for too long, and their connections with them. */
  forgetSilent(now: Date): void {
    for (const [proxy, { heardAt, open }] of this.#proxies) {
      if (now.getTime() - heardAt.getTime() < proxySilentAfterMs) continue;
      this.#proxies.delete(proxy);
      for (const backend of open) this.#noteClosed(backend, now);
    }
    if (this.#proxies.size === 0) this.#hearingSince = undefined;
  }

  /** Since when at least one proxy has been heard without a gap; `undefined` while there is none. */
  get hearingSince(): Date | undefined {
    return this.#hearingSince;
  }

  /** Until when all known proxies have told what is open through them; `undefined` while there is none. */
  get heardUntil(): Date | undefined {
    const times = Array.from(this.#proxies.values(), ({ heardAt }) => heardAt.getTime());
    return times.length === 0 ? undefined : new Date(Math.min(...times));
  }

  isOpen(backend: string): boolean {
    for (const { open } of this.#proxies.values()) if (open.has(backend)) return true;
    return false;
  }

  /** When the last known connection to a backend was closed. */
  closedAt(backend: string): Date | undefined {
    return this.#closedAt.get(backend);
  }

  /** The backend has ended. */
  forget(backend: string): void {
    this.#closedAt.delete(backend);
  }

  /** Connections to a backend that has ended are closed after it was forgotten. */
  #noteClosed(backend: string, now: Date): void {
    if (this.#isOurs(backend)) this.#closedAt.set(backend, now);
  }
}
