import { expect, test } from 'vitest';
import type { Egress } from '../../contract/egress.ts';
import { bridgeRules, egressRules, firstEgressRules, hooksOf } from './rules.ts';

const bridge = 'berth0123456789';
const rules = { bridge, subnet: '10.1.2.0/24', users: [0, 1000] };

test('names of chains fit into the 28 characters that the kernel allows', () => {
  for (const [, , , , chain = ''] of hooksOf(bridge)) expect(chain.length).toBeLessThanOrEqual(28);
});

test('a backend may answer, but does not reach its machine, other backends, or metadata', () => {
  const text = bridgeRules(rules, 'ipv4');
  const lines = text.split('\n').filter((line) => line.startsWith('-A BERTH0123456789-IN '));
  expect(lines[0]).toContain('ESTABLISHED,RELATED -j RETURN');
  expect(lines.at(-1)).toBe('-A BERTH0123456789-IN -j BERTH0123456789-EGRESS');
  const dropped = lines.slice(1, -1).join('\n');
  for (const target of ['--dst-type LOCAL', '-d 10.1.2.0/24', '-d 169.254.0.0/16', '-d 100.100.100.200/32'])
    expect(dropped).toContain(`${target} -j DROP`);
});

test('the chain of single backends is kept when those of the bridge are rewritten', () => {
  expect(bridgeRules(rules, 'ipv4')).not.toContain(':BERTH0123456789-EGRESS');
});

test('only the given users of the machine open connections to backends', () => {
  const out = bridgeRules(rules, 'ipv6')
    .split('\n')
    .filter((line) => line.startsWith('-A BERTH0123456789-OUT '))
    .map((line) => line.slice('-A BERTH0123456789-OUT '.length));
  expect(out).toEqual([
    '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN',
    '-m owner --uid-owner 0 -j RETURN',
    '-m owner --uid-owner 1000 -j RETURN',
    '-m conntrack --ctstate NEW -j DROP',
  ]);
});

test('nothing but answers leaves the bridge by IPv6', () => {
  const lines = bridgeRules(rules, 'ipv6').split('\n');
  expect(lines.filter((line) => line.startsWith('-A BERTH0123456789-IN '))).toEqual([
    '-A BERTH0123456789-IN -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN',
    '-A BERTH0123456789-IN -j DROP',
  ]);
});

test('a backend with a list of networks reaches only these', () => {
  const backends = new Map<string, Egress>([
    ['10.1.2.3', 'none'],
    ['10.1.2.4', ['192.0.2.0/24', '198.51.100.7/32']],
  ]);
  expect(egressRules(bridge, backends).split('\n')).toEqual([
    '*mangle',
    ':BERTH0123456789-EGRESS - [0:0]',
    '-A BERTH0123456789-EGRESS -s 10.1.2.3 -j DROP',
    '-A BERTH0123456789-EGRESS -s 10.1.2.4 -d 192.0.2.0/24 -j RETURN',
    '-A BERTH0123456789-EGRESS -s 10.1.2.4 -d 198.51.100.7/32 -j RETURN',
    '-A BERTH0123456789-EGRESS -s 10.1.2.4 -j DROP',
    'COMMIT',
    '',
  ]);
});

test('the rules of a new backend come before those of an earlier one with its address', () => {
  const inserted = (egress: 'open' | string[]) =>
    firstEgressRules(bridge, '10.1.2.4', egress)
      .split('\n')
      .filter((line) => line.startsWith('-I'));
  expect(inserted('open')).toEqual(['-I BERTH0123456789-EGRESS 1 -s 10.1.2.4 -j RETURN']);
  // Each rule is inserted at the first position, so the last one stands first.
  expect(inserted(['192.0.2.0/24'])).toEqual([
    '-I BERTH0123456789-EGRESS 1 -s 10.1.2.4 -j DROP',
    '-I BERTH0123456789-EGRESS 1 -s 10.1.2.4 -d 192.0.2.0/24 -j RETURN',
  ]);
});
