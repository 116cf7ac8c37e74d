/** Shows progress on standard error: a bar on a terminal, otherwise a line every ten seconds. */
import { Transform } from 'node:stream';
import type { Io } from '../session.ts';
import { safeText } from './safe-text.ts';

/** Often enough to look alive, and rare enough for a slow terminal. */
const drawEveryMs = 100;

/** Rare enough for the log of a CI job. */
const lineEveryMs = 10_000;

const barWidth = 24;

/** The parts of standard error that progress uses. */
type ProgressStream = Pick<Io['stderr'], 'isTTY' | 'columns'> & { readonly write: (text: string) => unknown };

export class Progress {
  readonly #stderr: ProgressStream;
  readonly #label: string;
  readonly #draws: boolean;
  #total: number | undefined;
  #done = 0;
  #step = '';
  #writtenAt = 0;

  constructor({ stderr, env }: Pick<Io, 'env'> & { readonly stderr: ProgressStream }, label: string) {
    this.#stderr = stderr;
    this.#label = safeText(label);
    this.#draws = stderr.isTTY && env['TERM'] !== 'dumb';
  }

  /** Starts. Without a total, only the number of bytes is shown. */
  start(totalBytes: number | undefined): void {
    this.#total = totalBytes;
    this.#writtenAt = Date.now();
    if (this.#draws) this.#draw();
    else this.#stderr.write(`${this.#label}\n`);
  }

  /** Sets the name of the current step, such as the digest of a layer. */
  step(name: string): void {
    this.#step = safeText(name);
  }

  /** Returns a stream that passes bytes through and counts them. */
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
    if (this.#draws) this.#draw();
    else this.#stderr.write(`${this.#label}: ${this.#bytes()}\n`);
  }

  /** Truncates the bar to one row, because the next frame could not replace a second row. */
  #draw(): void {
    const columns = this.#stderr.columns || 80;
    this.#stderr.write(`\r\u001b[K${this.#bar().slice(0, columns - 1)}`);
  }

  stop(result: string): void {
    if (this.#draws) this.#stderr.write('\r\u001b[K');
    this.#stderr.write(`${result}: ${sizeText(this.#done)}\n`);
  }

  #bar(): string {
    if (!this.#total) return `${this.#bytes()} ${this.#label} ${this.#step}`;
    const filled = Math.min(barWidth, Math.floor((this.#done / this.#total) * barWidth));
    // The bar comes first, because a narrow terminal shows only the beginning.
    return `[${'='.repeat(filled)}${' '.repeat(barWidth - filled)}] ${this.#bytes()} ${this.#label} ${this.#step}`;
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
