/** Who a request comes from, as far as an address can tell. */
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The address of a client. Behind a load balancer it is the last one in `X-Forwarded-For`: the one that the load balancer
 * itself has written. Whatever stands before it, and the whole header where nothing is in front, anybody could have written.
 */
export function clientAddress(request: IncomingMessage, behindLoadBalancer: boolean): string {
  const peer = request.socket.remoteAddress ?? 'unknown';
  if (!behindLoadBalancer) return plainAddress(peer);
  const forwarded = String(request.headers['x-forwarded-for'] ?? '');
  const last = plainAddress(forwarded.slice(forwarded.lastIndexOf(',') + 1).trim());
  return isIP(last) ? last : plainAddress(peer);
}

/** What to count a client by: its IPv4 address, or the /64 of its IPv6 address, the smallest network that providers assign. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}

/** Without a port, brackets, or the form in which IPv6 sockets see IPv4 addresses. */
function plainAddress(text: string): string {
  const address = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
