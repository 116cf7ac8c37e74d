import type { ServerResponse } from 'node:http';
import { ApiError } from '../model/api-error.ts';

/** A constant, because an error for each request would cost more than the rest of the request. No client reads it. */
const clientGone = new ApiError('BadRequest', 'The client has disconnected');

/**
 * The requests that are not answered yet, each with one signal. Combined signals (`AbortSignal.any`) would cost as much as the rest of
 * a small request.
 */
export class OpenRequests implements Disposable {
  readonly #open = new Set<AbortController>();
  readonly #closing = new AbortController();

  /** Aborts when the API closes. Its reason is an `ApiError`. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Aborts when the client of a response disconnects or the API closes. Its reason is an `ApiError`. */
  signalOf(response: ServerResponse): AbortSignal {
    const request = new AbortController();
    if (this.#closing.signal.aborted) request.abort(this.#closing.signal.reason);
    // The client may have left while its token was read.
    if (response.destroyed) request.abort(clientGone);
    if (request.signal.aborted) return request.signal;
    this.#open.add(request);
    response.on('close', () => {
      this.#open.delete(request);
      // For the client of a HEAD request, a stream ends with the head.
      if (!response.writableFinished || response.req.method === 'HEAD') request.abort(clientGone);
    });
    return request.signal;
  }

  /** Ends streams. */
  [Symbol.dispose](): void {
    this.#closing.abort(new ApiError('Unavailable', 'The platform is being stopped, try again in a moment'));
    for (const request of this.#open) request.abort(this.#closing.signal.reason);
  }
}
