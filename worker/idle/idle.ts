/** When a backend has run long enough. Pure: all times are handed in. */

export interface IdleFacts {
  readonly readyAt: Date;
  /** When the last known connection was closed. */
  readonly closedAt: Date | undefined;
  /** When a connection was last given out, as far as the worker knows. */
  readonly touchedAt: Date | undefined;
  /** When this worker began to watch a backend that an earlier one had started. */
  readonly watchedSince: Date | undefined;
  /** Since when proxies have been heard without a gap; `undefined`: none is heard. */
  readonly hearingSince: Date | undefined;
  readonly isOpen: boolean;
}

/**
 * Since when nobody needs the backend, or `undefined` while somebody does, or nobody can know. What happened while no proxy
 * was heard is unknown, so the clock starts anew when one is heard again.
 */
export function idleSince(facts: IdleFacts): Date | undefined {
  if (facts.isOpen || !facts.hearingSince) return undefined;
  const times = [facts.readyAt, facts.closedAt, facts.touchedAt, facts.watchedSince, facts.hearingSince];
  return new Date(Math.max(...times.map((time) => time?.getTime() ?? 0)));
}

/** Whether a backend has been idle for its limit. */
export function isIdleTooLong(facts: IdleFacts, maxIdleSeconds: number, now: Date): boolean {
  const since = idleSince(facts);
  return since !== undefined && now.getTime() - since.getTime() >= maxIdleSeconds * 1000;
}

/** Whether a backend has reached its lifetime limit, which counts from `ready`. */
export function isPastLifetime(readyAt: Date, lifetimeLimitSeconds: number | undefined, now: Date): boolean {
  return lifetimeLimitSeconds !== undefined && now.getTime() - readyAt.getTime() >= lifetimeLimitSeconds * 1000;
}
