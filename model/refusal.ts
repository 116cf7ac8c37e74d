import type { ServiceErrorCode } from '../contract/errors.ts';

/** What was asked for cannot be had. Carries a code of the service API's catalogue and a sentence that says what to do. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: ServiceErrorCode;

  constructor(code: ServiceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
