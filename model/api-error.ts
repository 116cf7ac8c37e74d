import type { ServiceErrorCode } from '../contract/errors.ts';
import { CodedError } from '../core/errors/coded-error.ts';

interface ApiErrorOptions extends ErrorOptions {
  readonly retryAfterSeconds?: number;
}

/** An error of the service API: a code of its catalogue, and a sentence that says what to do. */
export class ApiError extends CodedError<ServiceErrorCode> {
  override readonly name = 'ApiError';
  /** When a client may retry, if that is known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ServiceErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(code, message, options);
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
