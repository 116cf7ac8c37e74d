/** A failure that is reported as it stands: its message says what to do. */
export class Failure extends Error {
  override readonly name = 'Failure';
}
