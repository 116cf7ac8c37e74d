import { CodedError } from '../../core/errors/coded-error.ts';

/**
 * `unavailable`: the engine, or its containerd, does not answer; the request may have been carried out; try again.
 * `no-image`: the image is not on this machine. `no-network`: the node's network does not exist. `no-container`: the container
 * does not exist. `address-taken`: another container has the address. `name-taken`: a container of this name exists.
 * `adjusted`: the engine cannot set one of the limits, which is omitted from now on; create the container again.
 * `refused`: the engine refused for the reason in the message.
 */
export type EngineErrorCode =
  | 'unavailable'
  | 'no-image'
  | 'no-network'
  | 'no-container'
  | 'address-taken'
  | 'name-taken'
  | 'adjusted'
  | 'refused';

export class EngineError extends CodedError<EngineErrorCode> {
  override readonly name = 'EngineError';
}

/** Whether an error is an `EngineError` with this code. */
export function isEngineError(error: unknown, code: EngineErrorCode): boolean {
  return error instanceof EngineError && error.code === code;
}

/** Converts an error of dockerode into an `EngineError`. */
export function engineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const { statusCode, message } = answerOf(error);
  return new EngineError(codeOf(statusCode, message), message, { cause: error });
}

/** Makes one call to the engine. Throws an `EngineError` if it fails. */
export async function callEngine<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw engineError(error);
  }
}

/** As `callEngine`, but returns `undefined` if the call fails with this code or message. */
export async function callEngineUnless<T>(
  code: EngineErrorCode,
  call: () => Promise<T>,
  message?: RegExp,
): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    const known = engineError(error);
    if (known.code === code || message?.test(known.message)) return undefined;
    throw known;
  }
}

function codeOf(statusCode: number | undefined, message: string): EngineErrorCode {
  if (statusCode === undefined) return 'unavailable';
  // The engine uses one status for several of these, so the message decides (the same in 20.10 and 29).
  if (/no such image/i.test(message)) return 'no-image';
  if (/network .*not found/i.test(message)) return 'no-network';
  if (/no such container|dead or marked for removal/i.test(message)) return 'no-container';
  if (/address already in use/i.test(message)) return 'address-taken';
  if (/name .* is already in use/i.test(message)) return 'name-taken';
  return isContainerdAway(message) || endOfAnswer.test(message) ? 'unavailable' : 'refused';
}

/**
 * The engine's messages if containerd does not answer: with the name of the gRPC status (`Unavailable: …` in 28, `…: unavailable`
 * in 20.10), or with the message of gRPC and ttrpc for a broken connection.
 */
const containerdAway =
  /(?:^|: )Unavailable: |: unavailable$|error reading from server: |transport is closing|ttrpc: closed/;

/** The message if containerd was killed during its answer. Errors of a registry or a program contain more than this. */
const endOfAnswer = /^(?:[\w -]+: )*EOF(?:: unknown)?$/;

/** Whether an engine's message means that its containerd is restarting, which is no answer to the request. */
export function isContainerdAway(message: string): boolean {
  return containerdAway.test(message);
}

function answerOf(error: unknown): { statusCode: number | undefined; message: string } {
  if (!(error instanceof Error)) return { statusCode: undefined, message: String(error) };
  const { statusCode, json } = error as { statusCode?: number; json?: { message?: unknown } | null };
  const parsed = json?.message;
  // dockerode does not parse the answer if it expects a stream.
  const rest = error.message.replace(/^\(HTTP code \d+\) .*? - /, '').trim();
  return { statusCode, message: typeof parsed === 'string' ? parsed : rest };
}
