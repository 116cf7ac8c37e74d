/** Who a request comes from, as far as an address can tell. */
import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/**
 * The address of a client. Behind a load balancer it is the last one in `X-Forwarded-For`: the one that the load balancer
 * itself has written. Whatever stands before it, and the whole header where nothing is in front, anybody could have written.
 */
export function clientAddress(request: IncomingMessage, behindLoadBalancer: boolean): string {
  const peer = request.socket.remoteAddress ?? 'unknown';
  if (!behindLoadBalancer) return plainAddress(peer);
  const forwarded = String(request.headers['x-forwarded-for'] ?? '');
  const last = plainAddress(forwarded.slice(forwarded.lastIndexOf(',') + 1).trim());
  return isIPv4(last) || isIPv6(last) ? last : plainAddress(peer);
}

/** What to count a client by: its IPv4 address, or the /64 of its IPv6 address, which is the least that anybody is given. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/** Without a port, brackets, or the form in which IPv6 sockets see IPv4 addresses. */
function plainAddress(text: string): string {
  const address = /^\[(.+)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}

/** The groups of one side of an IPv6 address. An IPv4 address at its end stands for two. */
function groupsOf(side: string): string[] {
  return side.split(':').flatMap((group) => (group === '' ? [] : group.includes('.') ? ['0', '0'] : [group]));
}
