/** How a request of a batch ended. */
export type Outcome<Answer> = { readonly answer: Answer } | { readonly error: unknown };

interface Limits {
  /** How many batches may be under way at a time. */
  readonly atOnce: number;
  /** How many requests go into one. */
  readonly size: number;
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly end: (outcome: Outcome<Answer>) => void;
}

/**
 * Requests of one kind, answered in batches: who asks while nothing is under way is served at once, and those who ask
 * meanwhile go together. So a server that is far away or busy is asked less often, not more, the more there is to ask.
 * A request is sent after it was asked, never before: its answer is as fresh as that of a request of its own.
 */
export class Batches<Request, Answer> {
  readonly #run: (requests: readonly Request[]) => Promise<readonly Outcome<Answer>[]>;
  readonly #limits: Limits;
  #waiting: Waiting<Request, Answer>[] = [];
  #underWay = 0;
  #isDue = false;

  /** `run` gives the outcomes of requests in their order. If it rejects, all of them fail with that. */
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

  /** What arrived over the network in one turn of the event loop is all asked by its end. */
  #sendSoon(): void {
    if (this.#isDue || this.#underWay >= this.#limits.atOnce) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#waiting.splice(0, this.#limits.size);
    this.#underWay += 1;
    if (this.#waiting.length > 0) this.#sendSoon();
    const outcomes = await this.#outcomes(batch);
    for (const [index, { end }] of batch.entries()) end(outcomes[index] ?? { error: new Error('No outcome') });
    this.#underWay -= 1;
    if (this.#waiting.length > 0) this.#sendSoon();
  }

  async #outcomes(batch: readonly Waiting<Request, Answer>[]): Promise<readonly Outcome<Answer>[]> {
    try {
      return await this.#run(batch.map(({ request }) => request));
    } catch (error) {
      return batch.map(() => ({ error }));
    }
  }
}
