import type { ServiceErrorCode } from '../contract/errors.ts';

/** An error of the service API: a code of its catalogue, and a sentence that says what to do. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ServiceErrorCode;

  constructor(code: ServiceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
