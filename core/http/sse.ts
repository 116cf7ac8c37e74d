/** Server-Sent Events as the service API defines them: each has an ID, comments keep the connection alive, nothing is buffered. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../clock/clock.ts';

/** How long a browser waits before it reconnects. */
const retryMs = 2_000;

/** Shorter than the idle time-outs of common proxies (30 to 60 s). */
const commentEveryMs = 15_000;

export interface EventStream extends Disposable {
  /** Sends one event in one write: some clients parse each packet as one event. */
  send(id: number | string, data: string): void;
  /** Resolves when the client has received most of what was sent. Rejects when the signal aborts. */
  drained(signal: AbortSignal): Promise<void>;
  /** Ends the response. */
  end(): void;
}

/** Begins an event stream on a response. Dispose it when the client disconnects. */
export function openEventStream(response: ServerResponse, clock: Clock): EventStream {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  response.write(`retry: ${retryMs}\n\n`);
  const comments = clock.every(commentEveryMs, () => {
    // If earlier events are still in the buffer, they keep the connection alive.
    if (!response.writableNeedDrain) response.write(':\n\n');
  });
  return {
    send: (id, data) => response.write(`id: ${id}\n${dataFields(data)}\n`),
    drained: async (signal) => {
      if (response.writableNeedDrain) await once(response, 'drain', { signal });
    },
    end: () => response.end(),
    [Symbol.dispose]: () => comments[Symbol.dispose](),
  };
}

/** The position after which a stream continues, or `undefined` if it starts from the beginning. */
export function lastEventId(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

/** The `data` fields of an event. A single carriage return ends a field, too: data must not be able to start another field. */
function dataFields(data: string): string {
  if (!/[\r\n]/.test(data)) return `data: ${data}\n`;
  const lines = data.split(/\r\n|\r|\n/);
  return lines.map((line) => `data: ${line}\n`).join('');
}
