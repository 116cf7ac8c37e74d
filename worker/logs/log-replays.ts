import type { LogEntry } from '../docker/log-frames.ts';

/**
 * Knows what an engine tells twice: where much is written, one that follows a log may begin its file anew. What one program writes
 * to one output has times that never go back, so what is earlier than the entry before, up to that one, was told already.
 */
export class LogReplays {
  readonly #latest = { stdout: '', stderr: '' };
  readonly #isReplayed = { stdout: false, stderr: false };

  isNew({ source, time }: LogEntry): boolean {
    const latest = this.#latest[source];
    if (time < latest) this.#isReplayed[source] = true;
    if (time > latest) this.#isReplayed[source] = false;
    if (this.#isReplayed[source]) return false;
    this.#latest[source] = time;
    return true;
  }
}
