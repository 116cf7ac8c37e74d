/** The port for time, so that tests can control leases, sweeps and expiries. */
export interface Clock {
  /** The time of day. */
  now(): Date;
  /** Calls `action` once, `delayMs` from now, unless the returned timer is disposed first. Never keeps the process alive. */
  after(delayMs: number, action: () => void): Disposable;
  /** Calls `action` every `periodMs`, the first time one period from now. Never keeps the process alive. */
  every(periodMs: number, action: () => void): Disposable;
  /** Resolves `delayMs` from now; rejects with the signal's reason as soon as it aborts. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}
