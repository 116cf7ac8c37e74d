import { isTimeout } from './errors.ts';

/** The outcome of one request of a batch. */
export type Outcome<Answer> = { readonly answer: Answer } | { readonly error: unknown };

interface Limits {
  /** How many batches may run at a time. */
  readonly atOnce: number;
  /** How many requests a batch has at most. */
  readonly size: number;
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly end: (outcome: Outcome<Answer>) => void;
}

/**
 * Sends requests of one kind in batches: a request is sent at once if no batch is running; requests that arrive meanwhile share the
 * next batch. So a distant or busy server receives fewer, larger requests as the load grows. A batch is sent after its requests were
 * made, so each answer is as fresh as that of a separate request. If no server answers a batch in time, requests that wait fail with it.
 */
export class Batches<Request, Answer> {
  readonly #run: (requests: readonly Request[]) => Promise<readonly Outcome<Answer>[]>;
  readonly #limits: Limits;
  #waiting: Waiting<Request, Answer>[] = [];
  #running = 0;
  #isDue = false;

  /** @param run - resolves to the outcomes in the order of the requests; if it rejects, all of them fail with its error */
  constructor(run: (requests: readonly Request[]) => Promise<readonly Outcome<Answer>[]>, limits: Limits) {
    this.#run = run;
    this.#limits = limits;
  }

  async ask(request: Request): Promise<Answer> {
    const outcome = await new Promise<Outcome<Answer>>((end) => {
      this.#waiting.push({ request, end });
      this.#sendSoon();
    });
    if ('error' in outcome) throw outcome.error;
    return outcome.answer;
  }

  /** At the end of this turn of the event loop, so that all requests that arrived in it share a batch. */
  #sendSoon(): void {
    if (this.#isDue || this.#running >= this.#limits.atOnce) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#waiting.splice(0, this.#limits.size);
    this.#running += 1;
    if (this.#waiting.length > 0) this.#sendSoon();
    const outcomes = await this.#outcomes(batch);
    for (const [index, { end }] of batch.entries()) end(outcomes[index] ?? { error: new Error('No outcome') });
    const [first] = outcomes;
    if (first && 'error' in first && isTimeout(first.error)) this.#failWaiting(first);
    this.#running -= 1;
    if (this.#waiting.length > 0) this.#sendSoon();
  }

  /** Without a server, the next batch would fail after the same time, and so each batch would wait for all batches before it. */
  #failWaiting(outcome: Outcome<Answer>): void {
    for (const { end } of this.#waiting.splice(0)) end(outcome);
  }

  async #outcomes(batch: readonly Waiting<Request, Answer>[]): Promise<readonly Outcome<Answer>[]> {
    try {
      return await this.#run(batch.map(({ request }) => request));
    } catch (error) {
      return batch.map(() => ({ error }));
    }
  }
}
