/** A backend cannot start. The message is for its owner: one sentence, nothing secret in it. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
}
