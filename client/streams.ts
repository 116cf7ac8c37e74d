/** Event streams that survive broken connections: a stream that breaks is reopened after its last event. */
import { EventParser } from './events.ts';
import type { ServerEvent } from './events.ts';
import { newTimeLimit, wait } from './time.ts';
import type { TimeLimit } from './time.ts';
import { isTemporary, problemOf } from './transport.ts';
import type { CallInput, EndpointName, Transport } from './transport.ts';

export interface StreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** The ID of an event: only later events arrive. */
  readonly after?: string | undefined;
}

interface FollowedStream<Name extends EndpointName> extends StreamOptions {
  readonly name: Name;
  readonly input: CallInput<Name>;
  /**
   * Called when the server has ended the stream, with whether events arrived since the stream was last opened. Resolves with whether
   * the stream is complete: a server that is being stopped also ends its streams.
   */
  readonly isComplete: (hadEvents: boolean) => Promise<boolean>;
}

/** The server sends a comment every 15 s, so a connection that is silent for three times as long is dead. */
const silenceMs = 45_000;

/** The status with which the server answers if the client has received every event. */
const allReceived = 204;

/** Follows an event stream until it is complete. */
export async function* followEvents<Name extends EndpointName>(
  transport: Transport,
  { name, input, isComplete, signal, after }: FollowedStream<Name>,
): AsyncGenerator<ServerEvent, void, undefined> {
  const request = transport.prepare(name, input);
  let parser = new EventParser(after);
  let failures = 0;
  for (;;) {
    const limit = newTimeLimit('The event stream was silent for too long', signal);
    let hadEvents = false;
    try {
      limit.restart(transport.timeoutMs);
      const position = parser.lastEventId !== undefined && { 'last-event-id': parser.lastEventId };
      const headers = { ...request.headers, accept: 'text/event-stream', ...position };
      const response = await transport.send({ ...request, headers }, limit.signal);
      failures = 0;
      if (response.status === allReceived) return;
      for await (const piece of piecesOf(response, limit)) {
        for (const event of parser.parse(piece)) {
          hadEvents = true;
          yield event;
        }
      }
      limit.pause();
      if (await isComplete(hadEvents)) return;
    } catch (error) {
      signal?.throwIfAborted();
      const problem = problemOf(error, limit.signal);
      failures += 1;
      if (!isTemporary(problem) || failures > transport.retries) throw problem;
      await wait(problem.retryAfterMs ?? 0, signal);
    } finally {
      limit.end();
    }
    await wait(transport.backOffMs(failures, parser.retryMs), signal);
    parser = parser.forNextStream();
  }
}

/** The text of a response. While the consumer of the pieces is busy, the time limit is paused. */
async function* piecesOf(response: Response, limit: TimeLimit): AsyncGenerator<string, void, undefined> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  try {
    for (;;) {
      limit.restart(silenceMs);
      const { done, value } = await reader.read();
      limit.pause();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    // Closes the connection when the consumer leaves. If the connection broke, `cancel` repeats its error.
    await reader.cancel().catch(() => {});
  }
}
