/** IPv4 subnets as numbers: the candidates for a node's network, and which of them overlap other networks. */
import { createHash } from 'node:crypto';

export interface Subnet {
  readonly base: number;
  readonly prefix: number;
}

/** 4,091 addresses: more containers than a machine runs, so that no address is used again soon. */
const candidatePrefix = 20;
const candidateCount = 2 ** (candidatePrefix - 8);

/** Throws if a text is not a subnet in CIDR notation. */
export function parseSubnet(cidr: string): Subnet {
  const match = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(cidr);
  const base = match?.[1] === undefined ? undefined : parseAddress(match[1]);
  const prefix = Number(match?.[2]);
  if (base === undefined || !(prefix >= 0 && prefix <= 32)) throw new Error(`Not an IPv4 subnet: "${cidr}"`);
  return { base: firstOf(base, prefix), prefix };
}

export function formatSubnet({ base, prefix }: Subnet): string {
  return `${formatAddress(base)}/${prefix}`;
}

/** An IPv4 address as a number; `undefined` if the text is not an address. */
export function parseAddress(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || parts.some((part) => !/^\d{1,3}$/.test(part) || Number(part) > 255)) return undefined;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

export function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((bits) => Math.floor(address / 2 ** bits) % 256).join('.');
}

export function sizeOf({ prefix }: Subnet): number {
  return 2 ** (32 - prefix);
}

export function overlap(one: Subnet, other: Subnet): boolean {
  const prefix = Math.min(one.prefix, other.prefix);
  return firstOf(one.base, prefix) === firstOf(other.base, prefix);
}

/**
 * Subnets of 10.0.0.0/8 in the order in which to try them. The first one depends on the node's name, so that two nodes in one
 * network rarely choose the same. Subnets that overlap networks of the machine come last.
 */
export function candidateSubnets(node: string, reachable: readonly Subnet[]): Subnet[] {
  const first = createHash('sha256').update(node).digest().readUInt32BE() % candidateCount;
  const tenNet = parseSubnet('10.0.0.0/8').base;
  const all = Array.from({ length: candidateCount }, (_, index) => ({
    base: tenNet + ((first + index) % candidateCount) * 2 ** (32 - candidatePrefix),
    prefix: candidatePrefix,
  }));
  const overlaps = (candidate: Subnet) => reachable.some((other) => overlap(candidate, other));
  return [...all.filter((candidate) => !overlaps(candidate)), ...all.filter(overlaps)];
}

/** The subnets in the text of Linux's `/proc/net/route`, without the default route. */
export function parseRoutes(text: string): Subnet[] {
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .filter((fields) => fields.length > 7)
    .map((fields) => ({ base: fromLittleEndianHex(fields[1]), mask: fromLittleEndianHex(fields[7]) }))
    .map(({ base, mask }) => ({ base, prefix: mask === 0 ? 0 : 32 - Math.log2(2 ** 32 - mask) }))
    .filter(({ prefix }) => prefix > 0);
}

function fromLittleEndianHex(hex = '00000000'): number {
  return Buffer.from(hex, 'hex').readUInt32LE();
}

function firstOf(address: number, prefix: number): number {
  const size = 2 ** (32 - prefix);
  return Math.floor(address / size) * size;
}
