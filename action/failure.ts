/** A failure whose message says what to do, and is reported without a stack trace. */
export class Failure extends Error {
  override readonly name = 'Failure';
}
