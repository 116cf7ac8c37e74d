import type { TerminationKind } from '../contract/statuses.ts';
import type { Backend } from '../model/backend.ts';
import type { ContainerLease } from './container-lease.ts';
import type { BackendChange } from '../model/change-backend.ts';
import type { Statuses } from './statuses.ts';

/** A container that was made for a backend. */
export interface RunContainer {
  readonly id: string;
  /** Whether its process was started: only then can it end. */
  readonly started: boolean;
}

/** A termination under way. */
export interface Stopping {
  kind: TerminationKind;
  /** Aborts when it becomes hard. */
  readonly harden: AbortController;
}

/** One backend on this node, from the moment when the node takes it until nothing of it is left. */
export class Run {
  readonly id: string;
  /** The document as it was last read or written. */
  backend: Backend;
  container: RunContainer | undefined;
  address: string | undefined;
  /** The lease of its key, where its container enforces that itself. */
  containerLease: ContainerLease | undefined;
  /** Whether its image is being fetched, and how long that has taken: neither counts as time to start. */
  pulling = false;
  pulledMs = 0;
  /** Since when this worker watches it, if an earlier one started it: what it missed in between is unknown. */
  watchedSince: Date | undefined;
  /** It is idle, and its stop is being written. */
  sweeping: Promise<void> | undefined;
  /** What went wrong, where the worker itself had to end the container. */
  failure: string | undefined;
  peakMemoryBytes = 0;
  stopping: Stopping | undefined;
  /** Its end is being written and cleared up. */
  concluding: Promise<void> | undefined;
  /** Resolves when nothing of the start-up goes on any more, however it went. Never rejects. */
  startUpOver: Promise<void> = Promise.resolve();

  readonly #statuses: Statuses;
  readonly #life = new AbortController();
  readonly #startUp = new AbortController();
  readonly #died = Promise.withResolvers<void>();
  readonly #gone = Promise.withResolvers<void>();
  /** No container of it runs, nor will one. */
  isGone = false;
  /** Aborts when nothing is left of the backend, or the worker closes. */
  readonly signal: AbortSignal;
  /** Aborts earlier: as soon as there is no point in starting it. */
  readonly startUpSignal: AbortSignal;

  constructor(backend: Backend, statuses: Statuses, closing: AbortSignal) {
    this.id = backend.id;
    this.backend = backend;
    this.peakMemoryBytes = backend.peakMemoryBytes ?? 0;
    this.#statuses = statuses;
    this.signal = AbortSignal.any([closing, this.#life.signal]);
    this.startUpSignal = AbortSignal.any([this.signal, this.#startUp.signal]);
  }

  /** Writes a change of its document; see `Statuses.write`. */
  write(change: BackendChange): Promise<Backend | undefined> {
    const written = this.#statuses.write(change).then((backend) => {
      if (backend) this.backend = backend;
      return backend;
    });
    written.catch(() => {});
    return written;
  }

  /** Resolves when all that was asked for has been written, or given up. */
  async settled(): Promise<void> {
    await this.#statuses.settled();
  }

  cancelStartUp(): void {
    this.#startUp.abort();
  }

  /** Resolves when the container's process has ended. */
  get died(): Promise<void> {
    return this.#died.promise;
  }

  /** Resolves when no container of it runs, nor will one. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  markGone(): void {
    this.isGone = true;
    this.#gone.resolve();
  }

  markDied(): void {
    this.#died.resolve();
  }

  /** Nothing is left of it. */
  finish(): void {
    this.markGone();
    this.#life.abort();
  }
}
