/**
 * `unavailable`: the engine, or the containerd below it, does not answer; try again. What was asked for may have been done.
 * `no-image`: the image is not on this machine.
 * `no-network`: the node's network has gone. `no-container`: there is no such container. `address-taken`: somebody else has
 * the address. `name-taken`: a container of this name exists. `adjusted`: the engine cannot set one of the limits, and will
 * not be asked for it again; make the container anew. `refused`: the engine will not, and why stands in the message.
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

export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly code: EngineErrorCode;

  constructor(code: EngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Whether something that was thrown is an `EngineError` with this code. */
export function isEngineError(error: unknown, code: EngineErrorCode): boolean {
  return error instanceof EngineError && error.code === code;
}

/** What dockerode threw, as an `EngineError`. */
export function engineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const { statusCode, message } = answerOf(error);
  return new EngineError(codeOf(statusCode, message), message, { cause: error });
}

/** Runs one call to the engine; whatever it throws becomes an `EngineError`. */
export async function calling<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw engineError(error);
  }
}

function codeOf(statusCode: number | undefined, message: string): EngineErrorCode {
  if (statusCode === undefined) return 'unavailable';
  // The engine has one status for several of these, so its words must tell (the same in 20.10 and 29).
  if (/no such image/i.test(message)) return 'no-image';
  if (/network .*not found/i.test(message)) return 'no-network';
  if (/no such container|dead or marked for removal/i.test(message)) return 'no-container';
  if (/address already in use/i.test(message)) return 'address-taken';
  if (/name .* is already in use/i.test(message)) return 'name-taken';
  return isContainerdAway(message) || endOfAnswer.test(message) ? 'unavailable' : 'refused';
}

/**
 * How the engine passes on that containerd does not answer: with gRPC's name of the status (`Unavailable: …` in 28,
 * `…: unavailable` in 20.10), or with what gRPC and ttrpc say of a connection that broke.
 */
const containerdAway =
  /(?:^|: )Unavailable: |: unavailable$|error reading from server: |transport is closing|ttrpc: closed/;

/** All that is left of containerd's answer when it was killed in the middle. What a registry or a program said names more. */
const endOfAnswer = /^(?:[\w -]+: )*EOF(?:: unknown)?$/;

/** Whether the words of an engine mean that its containerd is restarting, which says nothing about what was asked for. */
export function isContainerdAway(message: string): boolean {
  return containerdAway.test(message);
}

function answerOf(error: unknown): { statusCode: number | undefined; message: string } {
  if (!(error instanceof Error)) return { statusCode: undefined, message: String(error) };
  const { statusCode, json } = error as { statusCode?: number; json?: { message?: unknown } | null };
  const said = json?.message;
  // dockerode does not parse the answer where it expected a stream.
  const rest = error.message.replace(/^\(HTTP code \d+\) .*? - /, '').trim();
  return { statusCode, message: typeof said === 'string' ? said : rest };
}
