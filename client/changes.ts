/** Requests that change something, retried where that is safe. */
import type { Endpoints, ServiceErrorCode } from './contract.ts';
import { BerthError } from './errors.ts';
import type { CallInput, EndpointName, Transport } from './transport.ts';

/** Read the fields one by one, never by a spread: an `AbortController` is such an object, too. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long one attempt may take. Default: that of the client. */
  readonly timeoutMs?: number | undefined;
}

interface ChangeOptions {
  readonly options?: CallOptions | undefined;
  /** The API's errors if the change was made before. */
  readonly doneBefore: readonly ServiceErrorCode[];
}

/** Sends a change, and retries it if no response arrives: the errors `doneBefore` then mean that an earlier attempt made it. */
export async function sendChange<Name extends EndpointName>(
  transport: Transport,
  name: Name,
  input: CallInput<Name>,
  { options: { signal, timeoutMs } = {}, doneBefore }: ChangeOptions,
): Promise<void> {
  let mayBeDone = false;
  try {
    await transport.json(name, input, { signal, timeoutMs, repeatable: true, onLost: () => (mayBeDone = true) });
  } catch (error) {
    if (!(mayBeDone && error instanceof BerthError && doneBefore.some((code) => code === error.code))) throw error;
  }
}

/** Sends a change that has the same result when it is made twice, and retries it if no response arrives. */
export async function sendIdempotent<Name extends EndpointName>(
  transport: Transport,
  name: Name,
  input: CallInput<Name>,
  { signal, timeoutMs }: CallOptions = {},
): Promise<Endpoints[Name]['answer']> {
  return await transport.json(name, input, { signal, timeoutMs, repeatable: true });
}
