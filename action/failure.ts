import { BerthError } from '../client/index.ts';

/** A failure whose message says what to do, and is reported without a stack trace. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** The message of an error for the log. */
export function messageOf(error: unknown): string {
  if (error instanceof BerthError) {
    const id = error.id ? ` (request ${error.id})` : '';
    return `${error.code}: ${error.message}${id}`;
  }
  if (error instanceof Failure) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
