/** Server-Sent Events, as the HTML standard defines them ("Interpreting an event stream"). */

export interface ServerEvent {
  readonly id: string | undefined;
  /** `message` unless the server names it. */
  readonly type: string;
  readonly data: string;
}

/** Parses the text of an event stream, piece by piece. */
export class EventParser {
  /** The ID of the last complete event, after which a new stream continues. */
  lastEventId: string | undefined;
  /** How long the server asks clients to wait before they reconnect. */
  retryMs: number | undefined;
  /** The start of a line whose end has not arrived. */
  #rest = '';
  /** Whether the last piece ended with CR: a following LF belongs to the same line end. */
  #endedWithCr = false;
  #id: string | undefined;
  #data: string[] = [];
  #type = '';

  constructor(lastEventId: string | undefined) {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  /** A parser for the stream that continues after this one. */
  forNextStream(): EventParser {
    const next = new EventParser(this.lastEventId);
    next.retryMs = this.retryMs;
    return next;
  }

  /** The events that are complete with this piece. */
  *parse(piece: string): Generator<ServerEvent> {
    const text = this.#endedWithCr && piece.startsWith('\n') ? piece.slice(1) : piece;
    if (piece !== '') this.#endedWithCr = piece.endsWith('\r');
    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const event = this.#readLine(line);
      if (event) yield event;
    }
  }

  #readLine(line: string): ServerEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#type = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  #dispatch(): ServerEvent | undefined {
    this.lastEventId = this.#id;
    const event = { id: this.lastEventId, type: this.#type || 'message', data: this.#data.join('\n') };
    const hasData = this.#data.length > 0;
    this.#data = [];
    this.#type = '';
    return hasData ? event : undefined;
  }
}
