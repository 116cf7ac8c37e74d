/**
 * The firewall rules of a node's bridge, as input of `iptables-restore`. They stand in the table `mangle`, which packets pass before
 * the tables that Docker writes: no rule of the engine can accept packets that are dropped here, and an engine that starts does not delete them.
 *
 *     PREROUTING  -i bridge   IN      networks that backends may reach, then EGRESS
 *                             EGRESS  networks that single backends may reach, by their address
 *     OUTPUT      -o bridge   OUT     which users of this machine may connect to backends
 */
import type { Egress } from '../../contract/egress.ts';

/** An address family with its program. */
export type Family = 'ipv4' | 'ipv6';

export interface BridgeRules {
  readonly bridge: string;
  /** The subnet of the bridge in CIDR notation. */
  readonly subnet: string;
  /** Numeric users of this machine that may connect to backends. */
  readonly users: readonly number[];
}

/**
 * Networks that no backend may reach: this host, link-local addresses, where clouds answer with metadata and credentials, those of
 * clouds that use other addresses (Azure, Alibaba, Oracle), and reserved ones.
 */
const refusedNetworks = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '168.63.129.16/32',
  '100.100.100.200/32',
  '192.0.0.0/24',
  '224.0.0.0/3',
];

const answers = '-m conntrack --ctstate ESTABLISHED,RELATED -j RETURN';

/** The names of a bridge's chains. */
export function chainsOf(bridge: string): { readonly in: string; readonly egress: string; readonly out: string } {
  const name = bridge.toUpperCase();
  return { in: `${name}-IN`, egress: `${name}-EGRESS`, out: `${name}-OUT` };
}

/** The rules that pass packets to the chains, as words that begin with the name of the rule's chain. */
export function hooksOf(bridge: string): string[][] {
  const chains = chainsOf(bridge);
  return [
    ['PREROUTING', '-i', bridge, '-j', chains.in],
    ['OUTPUT', '-o', bridge, '-j', chains.out],
  ];
}

/** Rewrites the chains of the bridge, and keeps the rules of single backends. */
export function bridgeRules({ bridge, subnet, users }: BridgeRules, family: Family): string {
  const chains = chainsOf(bridge);
  // Backends have no IPv6 address.
  const dropped = family === 'ipv4' ? droppedIpv4(subnet) : ['-j DROP'];
  return restore([
    `:${chains.in} - [0:0]`,
    `:${chains.out} - [0:0]`,
    ...[answers, ...dropped].map((rule) => `-A ${chains.in} ${rule}`),
    ...(family === 'ipv4' ? [`-A ${chains.in} -j ${chains.egress}`] : []),
    ...[
      answers,
      ...users.map((user) => `-m owner --uid-owner ${user} -j RETURN`),
      '-m conntrack --ctstate NEW -j DROP',
    ].map((rule) => `-A ${chains.out} ${rule}`),
  ]);
}

function droppedIpv4(subnet: string): string[] {
  return [
    ...['LOCAL', 'BROADCAST', 'MULTICAST'].map((type) => `-m addrtype --dst-type ${type} -j DROP`),
    ...[subnet, ...refusedNetworks].map((network) => `-d ${network} -j DROP`),
  ];
}

/** Rewrites the rules of all single backends, by their address. */
export function egressRules(bridge: string, backends: ReadonlyMap<string, Egress>): string {
  const chain = chainsOf(bridge).egress;
  const rules = [...backends].flatMap(([address, egress]) => rulesFor(address, egress));
  return restore([`:${chain} - [0:0]`, ...rules.map((rule) => `-A ${chain} ${rule}`)]);
}

/** Inserts the rules of one backend before the existing ones, which may be of an earlier backend with its address. */
export function firstEgressRules(bridge: string, address: string, egress: Egress): string {
  const chain = chainsOf(bridge).egress;
  const rules = egress === 'open' ? [`-s ${address} -j RETURN`] : rulesFor(address, egress);
  return restore(rules.toReversed().map((rule) => `-I ${chain} 1 ${rule}`));
}

/** Deletes the chains, to which no rule passes packets any more. */
export function noRules(bridge: string, family: Family): string {
  const chains = chainsOf(bridge);
  const names = [chains.in, chains.out, ...(family === 'ipv4' ? [chains.egress] : [])];
  return restore([...names.map((name) => `:${name} - [0:0]`), ...names.map((name) => `-X ${name}`)]);
}

function rulesFor(address: string, egress: Egress): string[] {
  if (egress === 'open') return [];
  const allowed = egress === 'none' ? [] : egress.map((network) => `-s ${address} -d ${network} -j RETURN`);
  return [...allowed, `-s ${address} -j DROP`];
}

function restore(lines: readonly string[]): string {
  return ['*mangle', ...lines, 'COMMIT', ''].join('\n');
}
