/**
 * Request coalescing: equal requests of one turn of the event loop become one request to the server, and share its result.
 * Clients that connect to one service at the same time look for the same image. The request is sent at the end of the turn,
 * after every caller that shares its result has asked.
 */
export class RequestCoalescer<Result> {
  readonly #pending = new Map<string, Promise<Result>>();

  /** The result of `request`, or of the request with the same `key` that was made in this turn. */
  async run(key: string, request: () => Promise<Result>): Promise<Result> {
    let pending = this.#pending.get(key);
    if (!pending) {
      pending = this.#endOfTurn(key).then(request);
      this.#pending.set(key, pending);
    }
    return await pending;
  }

  async #endOfTurn(key: string): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#pending.delete(key);
  }
}
