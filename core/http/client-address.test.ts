import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { clientAddress, networkOf } from './client-address.ts';

const from = (remoteAddress: string, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;

test('without a load balancer: the peer, whatever the header says', () => {
  expect(clientAddress(from('192.0.2.1', '198.51.100.7'), false)).toBe('192.0.2.1');
  expect(clientAddress(from('::ffff:192.0.2.1'), false)).toBe('192.0.2.1');
  expect(clientAddress(from('2001:db8::1'), false)).toBe('2001:db8::1');
});

test.each([
  ['198.51.100.7', '198.51.100.7'],
  ['6.6.6.6, 198.51.100.7', '198.51.100.7'],
  ['6.6.6.6,198.51.100.7:4711', '198.51.100.7'],
  ['[2001:db8::7]:4711', '2001:db8::7'],
  ['2001:db8::7', '2001:db8::7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['', '10.0.0.1'],
  [undefined, '10.0.0.1'],
  ['198.51.100.7, unknown', '10.0.0.1'],
  ['198.51.100.7,', '10.0.0.1'],
  ['a'.repeat(10_000), '10.0.0.1'],
])('behind a load balancer %s is %s', (forwarded, address) => {
  expect(clientAddress(from('10.0.0.1', forwarded), true)).toBe(address);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['unknown', 'unknown'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['2001:0DB8::', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::ffff:c000:201', '192.0.2.1'],
  ['0:0:0:0:0:FFFF:C000:0201', '192.0.2.1'],
  ['64:ff9b::192.0.2.1', '192.0.2.1'],
  ['64:ff9b::c000:201', '192.0.2.1'],
  ['64:ff9b:1::c000:201', '64:ff9b:1:0::/64'],
])('%s counts as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
