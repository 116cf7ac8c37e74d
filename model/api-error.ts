import type { ServiceErrorCode } from '../contract/errors.ts';

interface ApiErrorOptions extends ErrorOptions {
  readonly retryAfterSeconds?: number;
}

/** An error of the service API: a code of its catalogue, and a sentence that says what to do. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ServiceErrorCode;
  /** When a client may try again, if that is known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ServiceErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
