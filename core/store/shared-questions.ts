/**
 * The same question, asked several times in one turn of the event loop, is asked once: those who connect to one service at
 * the same time look for the same image. It is sent at the turn's end, after all who share its answer have asked.
 */
export class SharedQuestions<Answer> {
  readonly #open = new Map<string, Promise<Answer>>();

  /** The answer to `question`, or to the one that was asked under the same `name` in this turn. */
  async ask(name: string, question: () => Promise<Answer>): Promise<Answer> {
    let asked = this.#open.get(name);
    if (!asked) {
      asked = this.#atTurnsEnd(name).then(question);
      this.#open.set(name, asked);
    }
    return await asked;
  }

  async #atTurnsEnd(name: string): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#open.delete(name);
  }
}
