import { describe, expect, it } from 'vitest';
import {
  candidateSubnets,
  formatAddress,
  formatSubnet,
  overlap,
  parseAddress,
  parseRoutes,
  parseSubnet,
} from './subnets.ts';

describe('subnets', () => {
  it('are parsed and formatted in CIDR notation', () => {
    expect(formatSubnet(parseSubnet('10.64.31.7/20'))).toBe('10.64.16.0/20');
    expect(formatSubnet(parseSubnet('255.255.255.255/32'))).toBe('255.255.255.255/32');
    for (const wrong of ['10.0.0.0', '10.0.0/8', '10.0.0.256/8', '10.0.0.0/33', 'fd00::/8', '']) {
      expect(() => parseSubnet(wrong)).toThrow('Not an IPv4 subnet');
    }
  });

  it('represent addresses as numbers', () => {
    expect(parseAddress('192.0.2.7')).toBe(3_221_225_991);
    expect(formatAddress(3_221_225_991)).toBe('192.0.2.7');
  });

  it('overlap when one lies in the other', () => {
    expect(overlap(parseSubnet('10.0.0.0/8'), parseSubnet('10.9.16.0/20'))).toBe(true);
    expect(overlap(parseSubnet('10.9.16.0/20'), parseSubnet('10.0.0.0/8'))).toBe(true);
    expect(overlap(parseSubnet('10.9.16.0/20'), parseSubnet('10.9.32.0/20'))).toBe(false);
  });

  it('are tried in an order that depends on the node, free ones first', () => {
    const reachable = [parseSubnet('10.0.0.0/9')];
    const candidates = candidateSubnets('node-1', reachable);
    expect(candidates).toHaveLength(4096);
    expect(new Set(candidates.map(formatSubnet)).size).toBe(4096);
    expect(candidates.slice(0, 2048).some((candidate) => overlap(candidate, parseSubnet('10.0.0.0/9')))).toBe(false);
    expect(candidateSubnets('node-1', reachable)).toEqual(candidates);
    expect(candidateSubnets('node-2', [])[0]).not.toEqual(candidateSubnets('node-1', [])[0]);
  });

  it('are parsed from the routes of Linux', () => {
    const text = [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
      'eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      'tun0\t0000080A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0',
      '',
    ].join('\n');
    expect(parseRoutes(text).map(formatSubnet)).toEqual(['192.0.2.0/24', '10.8.0.0/16']);
  });
});
