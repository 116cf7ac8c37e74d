/** Builds when files change, and replaces the previous image with the new one. */
import { abortable } from '../../core/async/abortable.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { DockerFailure } from './docker.ts';
import type { Report } from './report.ts';

export interface DeploymentsOptions {
  readonly clock: Clock;
  readonly report: Report;
  /** Builds and pushes. Returns the digest. */
  readonly build: (signal: AbortSignal) => Promise<string>;
  /** Runs new backends with this digest, and stops backends of other images. */
  readonly serve: (digest: string, signal: AbortSignal) => Promise<void>;
}

/** A build starts when no file has changed for this time, because editors write several files in several steps. */
const quietMs = 150;

/** If files keep changing, a build starts after this time anyway. */
const maxQuietMs = 2_000;

/** Runs one build at a time, and holds its result. */
export class Deployments {
  readonly #options: DeploymentsOptions;
  /** Resolves when the image of the newest files is served, or its build has failed. */
  #settled = Promise.withResolvers<void>();
  #isSettled = false;
  #changed = Promise.withResolvers<void>();
  #isDirty = true;
  readonly #paths = new Set<string>();
  #lastChangeMs = 0;
  #digest: string | undefined;
  #problem: string | undefined;

  constructor(options: DeploymentsOptions) {
    this.#options = options;
  }

  /** The digest of the served image. */
  get digest(): string | undefined {
    return this.#digest;
  }

  /** Why the last build failed. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Whether a build is running or about to start. */
  get isBuilding(): boolean {
    return !this.#isSettled;
  }

  /** Records a changed file, and triggers a build. */
  change(path: string): void {
    this.#isDirty = true;
    this.#paths.add(path);
    this.#lastChangeMs = this.#nowMs();
    if (this.#isSettled) {
      this.#isSettled = false;
      this.#settled = Promise.withResolvers();
    }
    this.#changed.resolve();
  }

  /** Resolves when no build is running or about to start. Rejects with the signal's reason when it aborts. */
  async settled(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (!this.#isSettled) await abortable(this.#settled.promise, signal);
  }

  /** Builds now and after each change, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#isDirty = false;
      await this.#deploy(signal).catch((error: unknown) => this.#fail(error, signal));
      if (!this.#isDirty) this.#settle();
      await abortable(this.#changed.promise, signal).catch(() => {});
      await this.#waitForQuiet(signal).catch(() => {});
      this.#changed = Promise.withResolvers();
      this.#reportChanges(signal);
    }
  }

  async #deploy(signal: AbortSignal): Promise<void> {
    const { build, serve, report } = this.#options;
    const startedMs = this.#nowMs();
    report({ event: 'build-started' });
    const digest = await build(signal);
    const seconds = Math.round((this.#nowMs() - startedMs) / 100) / 10;
    this.#problem = undefined;
    if (digest === this.#digest) {
      report({ event: 'unchanged', seconds });
      return;
    }
    await serve(digest, signal);
    this.#digest = digest;
    report({ event: 'serving', digest, seconds });
  }

  #fail(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const lines = error instanceof DockerFailure ? error.lines : [];
    this.#problem = error instanceof Error ? error.message : String(error);
    this.#options.report({ event: 'build-failed', problem: this.#problem, lines });
  }

  #settle(): void {
    this.#isSettled = true;
    this.#settled.resolve();
  }

  async #waitForQuiet(signal: AbortSignal): Promise<void> {
    const sinceMs = this.#nowMs();
    for (;;) {
      const leftMs = Math.min(this.#lastChangeMs + quietMs, sinceMs + maxQuietMs) - this.#nowMs();
      if (leftMs <= 0) return;
      await this.#options.clock.sleep(leftMs, signal);
    }
  }

  #nowMs(): number {
    return this.#options.clock.now().getTime();
  }

  #reportChanges(signal: AbortSignal): void {
    const [path = ''] = this.#paths;
    const more = this.#paths.size - 1;
    this.#paths.clear();
    if (!signal.aborted) this.#options.report({ event: 'changed', path, more });
  }
}
