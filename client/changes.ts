/** Requests that change something, repeated where that is safe. */
import type { Endpoints, ServiceErrorCode } from './contract.ts';
import { BerthError } from './errors.ts';
import type { CallInput, EndpointName, Transport } from './transport.ts';

/** Read field by field, never spread: an `AbortController` is such an object, too. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long one attempt may take. Default: that of the client. */
  readonly timeoutMs?: number | undefined;
}

interface ChangeOptions {
  readonly options?: CallOptions | undefined;
  /** Errors of a change that was made before. */
  readonly doneBefore: readonly ServiceErrorCode[];
}

/** Sends a change. If no response arrives, it is repeated: the errors `doneBefore` then mean that it was made before. */
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

/** Sends a change that has the same result when it is made twice, and repeats it if no response arrives. */
export async function sendIdempotent<Name extends EndpointName>(
  transport: Transport,
  name: Name,
  input: CallInput<Name>,
  { signal, timeoutMs }: CallOptions = {},
): Promise<Endpoints[Name]['answer']> {
  return await transport.json(name, input, { signal, timeoutMs, repeatable: true });
}
