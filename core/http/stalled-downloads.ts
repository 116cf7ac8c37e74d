/**
 * Disconnects clients that do not receive their downloads. Each stalled download holds a file and a buffer, and costs the client
 * nothing. A few of them are harmless; when there are many downloads, the stalled ones are cut, and an honest client continues
 * with a range.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../clock/clock.ts';

/** At a megabyte or two each, this many downloads use half of the memory that a process should have. */
const manyDownloads = 128;

/** Twice the time that web servers usually allow between two writes. */
const maxStalledMs = 120_000;

const checkEveryMs = 10_000;

interface Download {
  readonly response: ServerResponse;
  /** Bytes passed to the system when the download last progressed; written in chunks of up to a megabyte. */
  sentBytes: number;
  progressedAt: Date;
}

export class StalledDownloads {
  readonly #clock: Clock;
  readonly #downloads = new Set<Download>();
  #check: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Watches a response until disposed. */
  watch(response: ServerResponse): Disposable {
    const download = { response, sentBytes: -1, progressedAt: this.#clock.now() };
    this.#downloads.add(download);
    this.#check ??= this.#clock.every(checkEveryMs, () => this.#cutStalled());
    return {
      [Symbol.dispose]: () => {
        this.#downloads.delete(download);
        if (this.#downloads.size > 0) return;
        this.#check?.[Symbol.dispose]();
        this.#check = undefined;
      },
    };
  }

  #cutStalled(): void {
    const now = this.#clock.now();
    for (const download of this.#downloads) {
      const sentBytes = download.response.socket?.bytesWritten ?? 0;
      if (sentBytes === download.sentBytes) continue;
      download.sentBytes = sentBytes;
      download.progressedAt = now;
    }
    if (this.#downloads.size <= manyDownloads) return;
    for (const { response, progressedAt } of this.#downloads) {
      if (now.getTime() - progressedAt.getTime() >= maxStalledMs) response.destroy();
    }
  }
}
