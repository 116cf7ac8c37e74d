/** The progress of long work on standard error: a bar on a terminal, a line now and then elsewhere. */
import { Transform } from 'node:stream';
import type { Io } from '../session.ts';
import { safeText } from './safe-text.ts';

/** Often enough to look alive, seldom enough for a slow terminal. */
const drawEveryMs = 100;

/** In a log of a CI job. */
const lineEveryMs = 10_000;

const barWidth = 24;

export class Progress {
  readonly #stderr: Io['stderr'];
  readonly #label: string;
  readonly #draws: boolean;
  #total: number | undefined;
  #done = 0;
  #step = '';
  #writtenAt = 0;

  constructor({ stderr, env }: Pick<Io, 'stderr' | 'env'>, label: string) {
    this.#stderr = stderr;
    this.#label = safeText(label);
    this.#draws = stderr.isTTY && env['TERM'] !== 'dumb';
  }

  /** Starts; without a total, only the bytes are shown. */
  start(totalBytes: number | undefined): void {
    this.#total = totalBytes;
    this.#writtenAt = Date.now();
    if (!this.#draws) this.#stderr.write(`${this.#label}\n`);
  }

  /** Says what is being done now, such as the digest of a layer. */
  step(name: string): void {
    this.#step = safeText(name);
  }

  /** Passes bytes through, and counts them. */
  counter(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.#add(chunk.length);
        done(null, chunk);
      },
    });
  }

  #add(bytes: number): void {
    this.#done += bytes;
    const now = Date.now();
    if (now - this.#writtenAt < (this.#draws ? drawEveryMs : lineEveryMs)) return;
    this.#writtenAt = now;
    this.#stderr.write(this.#draws ? `\r\u001b[K${this.#bar()}` : `${this.#label}: ${this.#bytes()}\n`);
  }

  stop(result: string): void {
    if (this.#draws) this.#stderr.write('\r\u001b[K');
    this.#stderr.write(`${result}: ${sizeText(this.#done)}\n`);
  }

  #bar(): string {
    if (!this.#total) return `${this.#label} ${this.#bytes()} ${this.#step}`;
    const filled = Math.min(barWidth, Math.floor((this.#done / this.#total) * barWidth));
    return `${this.#label} [${'='.repeat(filled)}${' '.repeat(barWidth - filled)}] ${this.#bytes()} ${this.#step}`;
  }

  #bytes(): string {
    return this.#total ? `${sizeText(this.#done)} of ${sizeText(this.#total)}` : sizeText(this.#done);
  }
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** A number of bytes for people, such as `1.5 MiB`. */
export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
