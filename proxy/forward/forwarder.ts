import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Address } from '../lookup.ts';
import type { OutgoingHeaders } from '../request-headers.ts';

/** Where a request goes, and what it says there. */
export interface Destination {
  readonly backend: string;
  readonly address: Address;
  /** What stands before the backend's paths in those of the client. */
  readonly prefix: string;
  /** The request target, byte for byte. */
  readonly path: string;
  readonly headers: OutgoingHeaders;
}

/** A client that asked for an upgrade: its connection, the bytes that came after its request, and an answer if it is refused. */
export interface Upgrading {
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly response: ServerResponse;
}

/**
 * Carries requests to backends and their answers back. Both functions resolve when the answer has begun, or the client has
 * left; from then on, what breaks on one side breaks on the other. They throw `backend-unreachable` when nothing has been
 * sent to the client, and `bad-request` when the request cannot be sent on.
 */
export interface Forwarder extends Disposable {
  web(request: IncomingMessage, response: ServerResponse, to: Destination): Promise<void>;
  upgrade(request: IncomingMessage, client: Upgrading, to: Destination): Promise<void>;

  /** A backend has ended: its idle connections are closed now, and those in use shortly. */
  drop(backend: string): void;

  /** Cuts every upgraded connection. */
  cutUpgraded(): void;
}
