/** Server-Sent Events, as the service API promises them: an ID each, a comment when nothing happens, no buffering. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../clock/clock.ts';

/** How long a browser waits before it reconnects. */
const retryMs = 2_000;

/** Shorter than the idle time-outs of proxies on the way (30 to 60 s). */
const commentEveryMs = 15_000;

export interface EventStream extends Disposable {
  /** Sends one event, in one write: some clients split events at packets. */
  send(id: number | string, data: string): void;
  /** Resolves when the client has taken what was sent, but for a little. Rejects when the signal aborts. */
  taken(signal: AbortSignal): Promise<void>;
  /** Ends the stream for good. */
  end(): void;
}

/** Begins an event stream on a response. It must be disposed when the client leaves. */
export function openEventStream(response: ServerResponse, clock: Clock): EventStream {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  response.write(`retry: ${retryMs}\n\n`);
  const comments = clock.every(commentEveryMs, () => {
    // Who has not taken what came before hears from us all the same, later.
    if (!response.writableNeedDrain) response.write(':\n\n');
  });
  return {
    send: (id, data) => response.write(`id: ${id}\n${dataFields(data)}\n`),
    taken: async (signal) => {
      if (response.writableNeedDrain) await once(response, 'drain', { signal });
    },
    end: () => response.end(),
    [Symbol.dispose]: () => comments[Symbol.dispose](),
  };
}

/** The position after which a client wants a stream to go on, or `undefined` if it starts anew. */
export function lastEventId(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

/** A carriage return alone ends a field as well: data must not be able to begin one of its own. */
function dataFields(data: string): string {
  if (!/[\r\n]/.test(data)) return `data: ${data}\n`;
  const lines = data.split(/\r\n|\r|\n/);
  return lines.map((line) => `data: ${line}\n`).join('');
}
