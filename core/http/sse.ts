/** Server-Sent Events as the service API defines them: each has an ID, comments keep the connection alive, nothing is buffered. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../clock/clock.ts';

/** How long a browser waits before it reconnects. */
const retryMs = 2_000;

/** When the process closes, each client waits for a random time in this range before it connects again, so that not all connect at once. */
const reconnectMs = { least: 500, most: 2_500 };

/** Shorter than the idle time-outs of common proxies (30 to 60 s). */
const commentEveryMs = 15_000;

/** As long as nginx waits for a client between two writes. */
const maxStalledMs = 60_000;

/** The most unread bytes of one client, far above all statuses of a backend, for senders that do not await `drained`. */
const maxWaitingBytes = 1024 * 1024;

/** The most unread bytes of all clients of a process: a tenth of the memory that a process should have. */
const maxAllWaitingBytes = 128 * 1024 * 1024;

const checkEveryMs = 1_000;

/**
 * Why a stream was dropped. `stalled`: the client has not read for a minute. `behind`: the client has too many unread bytes. `crowded`:
 * all clients together have too many unread bytes, and this one has not read for longest.
 */
export type DropReason = 'stalled' | 'behind' | 'crowded';

export interface EventStream extends Disposable {
  /** Sends one event in one write: some clients parse each packet as one event. */
  send(id: number | string, data: string): void;
  /** Resolves when the client has received most of the sent bytes. Rejects when the signal aborts. */
  drained(signal: AbortSignal): Promise<void>;
  /** Ends the response. If the process closes, sends the time after which the client connects again, to another process. */
  end(): void;
}

interface EventStreamsDeps {
  readonly clock: Clock;
  /** Aborts when the process closes. */
  readonly closing: AbortSignal;
  /** Called when a stream was dropped. */
  readonly onDrop: (response: ServerResponse, reason: DropReason) => void;
  /** Replaces the limit of the platform in tests. */
  readonly maxAllWaitingBytes?: number;
}

/** The event streams of a process. Drops streams whose clients do not read, so that memory remains for the others. */
export class EventStreams {
  readonly #deps: EventStreamsDeps;
  readonly #open = new Set<OpenStream>();
  #check: Disposable | undefined;

  constructor(deps: EventStreamsDeps) {
    this.#deps = deps;
  }

  /** Begins an event stream on a response, or answers with its head to a HEAD request. Dispose it when the client disconnects. */
  open(response: ServerResponse): EventStream {
    const { clock, closing } = this.#deps;
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    if (response.req.method === 'HEAD') response.end();
    // Drops a body that the client sends. Otherwise Node does it when the stream ends, often for thousands of streams at once.
    response.req.resume();
    const stream = new OpenStream(response, clock);
    this.#open.add(stream);
    this.#check ??= clock.every(checkEveryMs, () => this.#dropSlow());
    stream.write(`retry: ${retryMs}\n\n`);
    const comments = clock.every(commentEveryMs, () => {
      // If earlier events are still in the buffer, they keep the connection alive.
      if (!response.writableNeedDrain) stream.write(':\n\n');
    });
    return {
      send: (id, data) => {
        stream.write(`id: ${id}\n${dataFields(data)}\n`);
        if (stream.waitingBytes > maxWaitingBytes) this.#drop(stream, 'behind');
      },
      drained: async (signal) => {
        if (response.writableNeedDrain) await once(response, 'drain', { signal });
      },
      end: () => {
        if (closing.aborted) stream.write(`retry: ${newReconnectMs()}\n\n`);
        response.end();
      },
      [Symbol.dispose]: () => {
        comments[Symbol.dispose]();
        this.#close(stream);
      },
    };
  }

  #dropSlow(): void {
    const now = this.#deps.clock.now().getTime();
    const waiting = Array.from(this.#open).filter((stream) => stream.isWaiting);
    for (const stream of waiting) if (now - stream.readAtMs >= maxStalledMs) this.#drop(stream, 'stalled');
    this.#dropExcess(waiting, now);
  }

  #dropExcess(waiting: readonly OpenStream[], now: number): void {
    const { maxAllWaitingBytes: limit = maxAllWaitingBytes } = this.#deps;
    let bytes = waiting.reduce((sum, stream) => sum + stream.waitingBytes, 0);
    if (bytes <= limit) return;
    const silent = waiting.filter((stream) => now - stream.readAtMs >= checkEveryMs);
    for (const stream of silent.toSorted((a, b) => a.readAtMs - b.readAtMs)) {
      if (bytes <= limit) return;
      bytes -= stream.waitingBytes;
      this.#drop(stream, 'crowded');
    }
  }

  #drop(stream: OpenStream, reason: DropReason): void {
    if (!this.#close(stream)) return;
    this.#deps.onDrop(stream.response, reason);
    stream.response.destroy();
  }

  #close(stream: OpenStream): boolean {
    const wasOpen = this.#open.delete(stream);
    if (this.#open.size === 0) {
      this.#check?.[Symbol.dispose]();
      this.#check = undefined;
    }
    return wasOpen;
  }
}

/** A stream with its unread bytes, and the time since which the client has not read. */
class OpenStream {
  readonly response: ServerResponse;
  readonly #clock: Clock;
  #unsentWrites = 0;
  /** When the client last read, or when the first unread bytes were written. */
  readAtMs = 0;

  constructor(response: ServerResponse, clock: Clock) {
    this.response = response;
    this.#clock = clock;
  }

  get isWaiting(): boolean {
    return this.#unsentWrites > 0 && !this.response.destroyed;
  }

  get waitingBytes(): number {
    return this.response.destroyed ? 0 : this.response.writableLength;
  }

  write(text: string): void {
    if (this.response.writableEnded) return;
    if (this.#unsentWrites === 0) this.readAtMs = this.#clock.now().getTime();
    this.#unsentWrites += 1;
    this.response.write(text, this.#onSent);
  }

  readonly #onSent = (): void => {
    this.#unsentWrites -= 1;
    this.readAtMs = this.#clock.now().getTime();
  };
}

function newReconnectMs(): number {
  const { least, most } = reconnectMs;
  return Math.round(least + Math.random() * (most - least));
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
