import type { Transport } from './transport.ts';

/** The methods of the client for a group of endpoints. */
export abstract class EndpointGroup {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }
}
