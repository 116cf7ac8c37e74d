/** The network address of a client. */
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The address of a client. Behind a load balancer it is the last one in `X-Forwarded-For`, which the load balancer wrote. Clients
 * can forge the addresses before it, and without a load balancer the whole header.
 */
export function clientAddress(request: IncomingMessage, behindLoadBalancer: boolean): string {
  const peer = request.socket.remoteAddress ?? 'unknown';
  if (!behindLoadBalancer) return plainAddress(peer);
  const forwarded = String(request.headers['x-forwarded-for'] ?? '');
  const last = plainAddress(forwarded.slice(forwarded.lastIndexOf(',') + 1).trim());
  return isIP(last) ? last : plainAddress(peer);
}

/** The ranges of IPv6 addresses that end with the IPv4 address of a client: mapped ones, and those of NAT64. */
const rangesOfIPv4 = ['::ffff:0:0/96', '64:ff9b::/96'].map((range) => ipaddr.IPv6.parseCIDR(range));

/** The unit of rate limits: an IPv4 address, or the /64 of an IPv6 address, the smallest network that providers assign. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (rangesOfIPv4.some((range) => parsed.match(range))) {
    return new ipaddr.IPv4(parsed.toByteArray().slice(-4)).toString();
  }
  const groups = parsed.parts.slice(0, 4);
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}

/** Removes a port, brackets, and the prefix that IPv6 sockets add to IPv4 addresses. */
function plainAddress(text: string): string {
  const address = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
