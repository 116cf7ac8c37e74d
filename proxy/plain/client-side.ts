import type { Channel } from './channel.ts';

/** The end of an exchange, for the client's connection. */
export interface ExchangeEnd {
  /** Whether the connection can carry another request. */
  readonly isReusable: boolean;
  /** Whether the whole request was read. */
  readonly isBodyRead: boolean;
}

/** The client of an exchange. */
export interface ClientSide {
  readonly channel: Channel;
  /** The exchange has ended. */
  onExchangeEnd(end: ExchangeEnd): void;
  /** Answers a request whose body is not valid, and closes the connection. */
  refuseBody(): void;
}
