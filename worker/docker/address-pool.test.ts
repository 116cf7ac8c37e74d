import { describe, expect, it } from 'vitest';
import { AddressPool } from './address-pool.ts';
import { parseSubnet } from './subnets.ts';

const subnet = parseSubnet('10.1.2.0/29');

describe('AddressPool', () => {
  it('assigns each address once, without those of the network itself', () => {
    const pool = new AddressPool(subnet, ['10.1.2.1'], 0);
    const all = Array.from({ length: 5 }, () => pool.assign());
    expect(all).toEqual(['10.1.2.2', '10.1.2.3', '10.1.2.4', '10.1.2.5', '10.1.2.6']);
    expect(() => pool.assign()).toThrow('All addresses');
  });

  it('assigns an address again only after all others', () => {
    const pool = new AddressPool(subnet, ['10.1.2.1'], 0);
    const first = pool.assign();
    pool.release(first);
    expect([pool.assign(), pool.assign(), pool.assign(), pool.assign(), pool.assign()]).toEqual([
      '10.1.2.3',
      '10.1.2.4',
      '10.1.2.5',
      '10.1.2.6',
      first,
    ]);
  });

  it('skips reserved addresses, and ignores addresses outside the subnet', () => {
    const pool = new AddressPool(subnet, ['10.1.2.1', '10.1.2.2'], 0);
    expect(['10.1.2.3', '192.168.0.4', 'nonsense'].map((each) => pool.reserve(each))).toEqual([true, false, false]);
    pool.release('10.9.9.9');
    expect(pool.assign()).toBe('10.1.2.4');
  });

  it('begins at a random address', () => {
    const wide = parseSubnet('10.0.0.0/20');
    const firsts = new Set(Array.from({ length: 20 }, () => new AddressPool(wide, []).assign()));
    expect(firsts.size).toBeGreaterThan(10);
  });
});
