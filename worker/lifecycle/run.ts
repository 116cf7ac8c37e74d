import type { TerminationKind } from '../../contract/statuses.ts';
import type { Clock } from '../../core/clock/clock.ts';
import type { Backend } from '../../model/backend.ts';
import type { BackendChange } from '../../model/change-backend.ts';
import type { ContainerLease } from '../leases/container-lease.ts';
import type { Statuses } from './statuses.ts';

/** A container that was made for a backend. */
export interface RunContainer {
  readonly id: string;
  /** Whether its process was started: only then can it end. */
  readonly started: boolean;
}

export interface RunParts {
  readonly statuses: Statuses;
  /** The lease of its key, where its container enforces that itself. */
  readonly containerLease?: ContainerLease | undefined;
  /** Aborts when the worker closes: the run is over for this worker, its container goes on. */
  readonly closing: AbortSignal;
  /** Of a backend that an earlier worker took. */
  readonly adopted?: { readonly at: Date; readonly pulledMs: number };
}

/**
 * One backend on this node, from the moment when the node takes it until nothing of it is left. Its life, in which any step but
 * the last two may be left out:
 *
 *     startUp             its image is pulled, its container made and started, its port listens; `endStartUp` cancels what is left
 *     beginStop           this worker ends it, softly or hard; `hardenStop` makes a soft stop hard
 *     processDied         its process has ended, by itself or not
 *     finalize            its end is written, and what it leaves is cleared up
 *     containerGone       no container of it runs, nor will one: the next holder of its key may start
 *     finish              nothing is left of it here
 */
export class Run {
  readonly id: string;
  readonly containerLease: ContainerLease | undefined;
  /** Since when this worker watches it, if an earlier one started it: what it missed in between is unknown. */
  readonly watchedSince: Date | undefined;
  /** Aborts when nothing is left of the backend, or the worker closes. */
  readonly signal: AbortSignal;
  /** Aborts earlier: as soon as there is no point in starting it. */
  readonly startUpSignal: AbortSignal;

  readonly #statuses: Statuses;
  readonly #startUp = new AbortController();
  readonly #harden = new AbortController();
  readonly #died = Promise.withResolvers<void>();
  readonly #gone = Promise.withResolvers<void>();
  readonly #life = new AbortController();
  #backend: Backend;
  #startUpOver: Promise<void> = Promise.resolve();
  #container: RunContainer | undefined;
  #address: string | undefined;
  #isPulling = false;
  #pulledMs: number;
  #peakMemoryBytes: number;
  #failure: string | undefined;
  #isStopping = false;
  #finalized: Promise<void> | undefined;
  #isGone = false;

  constructor(backend: Backend, { statuses, containerLease, closing, adopted }: RunParts) {
    this.id = backend.id;
    this.containerLease = containerLease;
    this.watchedSince = adopted?.at;
    this.signal = AbortSignal.any([closing, this.#life.signal]);
    this.startUpSignal = AbortSignal.any([this.signal, this.#startUp.signal]);
    this.#statuses = statuses;
    this.#backend = backend;
    this.#pulledMs = adopted?.pulledMs ?? 0;
    this.#peakMemoryBytes = backend.peakMemoryBytes ?? 0;
  }

  /** The document as it was last read or written. */
  get backend(): Backend {
    return this.#backend;
  }

  /** Writes a change of its document; see `Statuses.write`. */
  write(change: BackendChange): Promise<Backend | undefined> {
    const written = this.#statuses.write(change).then((backend) => {
      if (backend) this.#backend = backend;
      return backend;
    });
    written.catch(() => {});
    return written;
  }

  /** Resolves when nothing of the start-up goes on, and all that was asked for has been written, or given up. */
  async settled(): Promise<void> {
    await this.#startUpOver;
    await this.#statuses.settled();
  }

  /** @param work - must not reject */
  startUp(work: Promise<void>): void {
    this.#startUpOver = work;
  }

  /** Cancels what goes on of the start-up. Resolves when nothing does. Must not be awaited by the start-up itself. */
  async endStartUp(): Promise<void> {
    this.#startUp.abort();
    await this.#startUpOver;
  }

  /** Its image is pulled until what this returns is disposed. That does not count as time to start. */
  pull(clock: Clock): Disposable {
    const startedAt = clock.now();
    this.#isPulling = true;
    return {
      [Symbol.dispose]: () => {
        this.#isPulling = false;
        this.#pulledMs += Math.max(clock.now().getTime() - startedAt.getTime(), 0);
      },
    };
  }

  get isPulling(): boolean {
    return this.#isPulling;
  }

  /** How long its image has been pulled, up to now or by an earlier worker. */
  get pulledMs(): number {
    return this.#pulledMs;
  }

  /** The address of its container in the node's network. */
  get address(): string | undefined {
    return this.#address;
  }

  useAddress(address: string | undefined): void {
    this.#address = address;
  }

  get container(): RunContainer | undefined {
    return this.#container;
  }

  containerMade(id: string): void {
    this.#container = { id, started: false };
  }

  containerStarted(id: string): void {
    this.#container = { id, started: true };
  }

  /** The most memory that was seen in use. */
  get peakMemoryBytes(): number {
    return this.#peakMemoryBytes;
  }

  memoryUsed(bytes: number): void {
    this.#peakMemoryBytes = Math.max(this.#peakMemoryBytes, bytes);
  }

  /** Why the worker itself had to end it, for people: the first reason counts. */
  get failure(): string | undefined {
    return this.#failure;
  }

  fail(why: string): void {
    this.#failure ??= why;
  }

  /** How it is being stopped, if it is. */
  get stopKind(): TerminationKind | undefined {
    if (!this.#isStopping) return undefined;
    return this.#harden.signal.aborted ? 'hard' : 'soft';
  }

  /** Aborts when its stop is hard. */
  get hardStop(): AbortSignal {
    return this.#harden.signal;
  }

  beginStop(kind: TerminationKind): void {
    this.#isStopping = true;
    if (kind === 'hard') this.hardenStop();
  }

  hardenStop(): void {
    this.#harden.abort();
  }

  /** Resolves when its process has ended. */
  get died(): Promise<void> {
    return this.#died.promise;
  }

  processDied(): void {
    this.#died.resolve();
  }

  /** Whether its end is being written and cleared up. */
  get isFinalizing(): boolean {
    return this.#finalized !== undefined;
  }

  /** Only the first call counts; all resolve when that one's work is done. */
  async finalize(work: () => Promise<void>): Promise<void> {
    this.#finalized ??= work();
    await this.#finalized;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Resolves when no container of it runs, nor will one. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  containerGone(): void {
    this.#isGone = true;
    this.#gone.resolve();
  }

  finish(): void {
    this.containerGone();
    this.#life.abort();
  }
}
