import { randomInt } from 'node:crypto';
import { formatAddress, parseAddress, sizeOf } from './subnets.ts';
import type { Subnet } from './subnets.ts';

/**
 * Assigns the addresses of a subnet round robin, so that an address is not used again soon after its backend has ended: a stale
 * route must not reach another tenant's backend.
 */
export class AddressPool {
  readonly #subnet: Subnet;
  readonly #taken = new Set<number>();
  #next: number;

  /** @param firstOffset - default: random, so that a restart does not begin with recent addresses */
  constructor(subnet: Subnet, reserved: readonly string[], firstOffset?: number) {
    this.#subnet = subnet;
    this.#next = firstOffset ?? randomInt(sizeOf(subnet));
    for (const address of reserved) this.reserve(address);
    // The network's own address, and the broadcast address.
    this.#taken.add(0).add(sizeOf(subnet) - 1);
  }

  /** Returns a free address. Throws if there is none. */
  assign(): string {
    const size = sizeOf(this.#subnet);
    for (let tries = 0; tries < size; tries += 1) {
      const offset = this.#next;
      this.#next = (this.#next + 1) % size;
      if (this.#taken.has(offset)) continue;
      this.#taken.add(offset);
      return formatAddress(this.#subnet.base + offset);
    }
    throw new Error('All addresses of the network are taken');
  }

  /** Marks an address as taken. Returns `false` if it is not in the subnet. */
  reserve(address: string): boolean {
    const offset = this.#offsetOf(address);
    if (offset === undefined) return false;
    this.#taken.add(offset);
    return true;
  }

  release(address: string): void {
    const offset = this.#offsetOf(address);
    if (offset !== undefined) this.#taken.delete(offset);
  }

  #offsetOf(address: string): number | undefined {
    const number = parseAddress(address);
    if (number === undefined) return undefined;
    const offset = number - this.#subnet.base;
    return offset >= 0 && offset < sizeOf(this.#subnet) ? offset : undefined;
  }
}
