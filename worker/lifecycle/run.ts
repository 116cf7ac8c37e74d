import type { TerminationKind } from '../../contract/statuses.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { expectedPorts } from '../../model/backend-port.ts';
import type { Backend } from '../../model/backend.ts';
import type { BackendChange } from '../../model/change-backend.ts';
import type { WorkerContext } from '../context.ts';
import type { ImageConfig } from '../docker/image-config.ts';
import type { ContainerLease } from '../leases/container-lease.ts';
import { Statuses } from './statuses.ts';

/** A container that was created for a backend. */
export interface RunContainer {
  readonly id: string;
  /** Whether its process was started: only then can it exit. */
  readonly started: boolean;
}

export interface RunParts {
  readonly statuses: Statuses;
  /** The lease of its key, if the container enforces it. */
  readonly containerLease?: ContainerLease | undefined;
  /** Aborts when the worker closes: this worker then leaves the run, and the container continues. */
  readonly closing: AbortSignal;
  /** Set for a backend that an earlier worker claimed. */
  readonly adopted?: { readonly at: Date; readonly pausedMs: number } | undefined;
}

/** Adds the run of a backend that this node has claimed or adopted. */
export function newRun(worker: WorkerContext, backend: Backend, adopted?: RunParts['adopted']): Run {
  const { closing, containerLeases } = worker;
  const statuses = new Statuses(worker, backend.id, closing);
  const containerLease = backend.key === undefined ? undefined : containerLeases?.of(backend.id);
  const run = new Run(backend, { statuses, containerLease, closing, adopted });
  worker.runs.set(run.id, run);
  return run;
}

/**
 * One backend on this node, from its claim until all of it is removed. Its steps, of which all but the last two are optional:
 *
 *     startUp             its image is pulled, its container is created and started, its port opens; `endStartUp` cancels this
 *     beginStop           this worker stops it, softly or hard; `hardenStop` makes a soft stop hard
 *     processExited       its process has exited, for whatever reason
 *     finalize            its end is written, and its container and folders are removed
 *     containerGone       no container of it runs or will run: the next holder of its key may start
 *     finish              all of it is removed
 */
export class Run {
  readonly id: string;
  readonly containerLease: ContainerLease | undefined;
  /** When this worker adopted it, if an earlier worker started it: what happened in between is unknown. */
  readonly watchedSince: Date | undefined;
  /** Aborts when the run is finished, or the worker closes. */
  readonly signal: AbortSignal;
  /** Aborts with `signal`, and when its start is cancelled. */
  readonly startUpSignal: AbortSignal;

  readonly #statuses: Statuses;
  readonly #startUp = new AbortController();
  readonly #harden = new AbortController();
  readonly #exit = new AbortController();
  readonly #gone = Promise.withResolvers<void>();
  readonly #life = new AbortController();
  #backend: Backend;
  #startUpEnd: Promise<void> = Promise.resolve();
  #container: RunContainer | undefined;
  #address: string | undefined;
  #image: ImageConfig | undefined;
  #port: number | undefined;
  #isStartTimePaused = false;
  #pausedMs: number;
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
    this.#pausedMs = adopted?.pausedMs ?? 0;
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

  /** Resolves when the start-up has ended and every requested write is done or has failed. */
  async settled(): Promise<void> {
    await this.#startUpEnd;
    await this.#statuses.settled();
  }

  /** @param work - must not reject */
  startUp(work: Promise<void>): void {
    this.#startUpEnd = work;
  }

  /** Cancels the start-up, and resolves when it has ended. The start-up itself must not await this. */
  async endStartUp(): Promise<void> {
    this.#startUp.abort();
    await this.#startUpEnd;
  }

  /** The time until the result is disposed does not count as start time: its image is pulled, or the holder of its key has not ended. */
  pauseStartTime(clock: Clock): Disposable {
    const startedAt = clock.now();
    this.#isStartTimePaused = true;
    return {
      [Symbol.dispose]: () => {
        this.#isStartTimePaused = false;
        this.#pausedMs += Math.max(clock.now().getTime() - startedAt.getTime(), 0);
      },
    };
  }

  get isStartTimePaused(): boolean {
    return this.#isStartTimePaused;
  }

  /** The duration of all pauses of its start time, in this worker and an earlier one. */
  get pausedMs(): number {
    return this.#pausedMs;
  }

  /** The address of its container in the node's network. */
  get address(): string | undefined {
    return this.#address;
  }

  useAddress(address: string | undefined): void {
    this.#address = address;
  }

  /** The configuration of its image, once that was read. */
  get image(): ImageConfig | undefined {
    return this.#image;
  }

  useImage(image: ImageConfig): void {
    this.#image = image;
  }

  /** The port on which its container listens; before that is known, on which it is expected. */
  get port(): number {
    const { address, port } = this.#backend;
    return this.#port ?? address?.port ?? expectedPorts(port, this.#image?.ports ?? []).port;
  }

  usePort(port: number): void {
    this.#port = port;
  }

  get container(): RunContainer | undefined {
    return this.#container;
  }

  containerCreated(id: string): void {
    this.#container = { id, started: false };
  }

  containerStarted(id: string): void {
    this.#container = { id, started: true };
  }

  /** The highest memory usage that was measured. */
  get peakMemoryBytes(): number {
    return this.#peakMemoryBytes;
  }

  memoryUsed(bytes: number): void {
    this.#peakMemoryBytes = Math.max(this.#peakMemoryBytes, bytes);
  }

  /** The reason why the worker stopped it, for users. The first reason counts. */
  get failure(): string | undefined {
    return this.#failure;
  }

  fail(why: string): void {
    this.#failure ??= why;
  }

  /** How it is being stopped, or `undefined` if it is not. */
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

  /** Aborts when its process has exited. */
  get exitedSignal(): AbortSignal {
    return this.#exit.signal;
  }

  processExited(): void {
    this.#exit.abort();
  }

  /** Whether `finalize` was called. */
  get isFinalizing(): boolean {
    return this.#finalized !== undefined;
  }

  /** Only the work of the first call is done; every call resolves when it is done. */
  async finalize(work: () => Promise<void>): Promise<void> {
    this.#finalized ??= work();
    await this.#finalized;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Resolves when no container of it runs or will run. */
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
