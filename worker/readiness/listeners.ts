/** The sockets that listen in a container, and what they mean for a port that does not answer. */
import type { ExpectedPorts } from '../../model/backend-port.ts';

export interface Listener {
  /** `all`: every address. `localhost`: only the container itself. `other`: one address of the container. */
  readonly scope: 'all' | 'localhost' | 'other';
  readonly family: 4 | 6;
  readonly port: number;
}

/** Docker's DNS server, which is in the network of each container. */
const engineDns = '127.0.0.11';

const v4Length = 8;
const v6Length = 32;

/** IPv4 addresses within IPv6, in the order of the bytes in memory. */
const mappedPrefix = '0000000000000000FFFF0000';

/** Parses the output of `port-helper listeners`: addresses as the kernel prints them, of which a container may have many. */
export function parseListeners(output: string): Listener[] {
  return output.split('\n').flatMap((line) => {
    const [, hex = '', portHex = ''] = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(line) ?? [];
    const port = Number.parseInt(portHex, 16);
    const scope = hex.length === v4Length ? scopeOf4(hex) : hex.length === v6Length ? scopeOf6(hex) : undefined;
    if (scope === undefined || !(port >= 1)) return [];
    return [{ scope, family: hex.length === v4Length ? 4 : 6, port }];
  });
}

/** The kernel prints the number in the order of this machine's bytes, which is little-endian on all supported processors. */
function scopeOf4(hex: string): Listener['scope'] | undefined {
  const address = [...Buffer.from(hex, 'hex').reverse()].join('.');
  if (address === engineDns) return undefined;
  if (address === '0.0.0.0') return 'all';
  return address.startsWith('127.') ? 'localhost' : 'other';
}

function scopeOf6(hex: string): Listener['scope'] | undefined {
  if (hex.startsWith(mappedPrefix)) return scopeOf4(hex.slice(mappedPrefix.length));
  if (/^0+$/.test(hex)) return 'all';
  return hex === `${'0'.repeat(24)}01000000` ? 'localhost' : 'other';
}

/** Connections to a port of the container's address lead to a port that only the container reaches. */
export interface PortForward {
  readonly port: number;
  readonly target: '127.0.0.1' | '::1';
  readonly targetPort: number;
}

/**
 * The first port that forwards use: above those that the kernel gives to outgoing connections (32768 to 60999). It is not that of the
 * program, which may listen on localhost while it prepares itself, and then on every address. It would find its port in use.
 */
const firstForwardPort = 61_000;

/**
 * The forward that a port needs whose program listens on localhost, or on IPv6 alone. `undefined` if no forward helps. Only for the
 * expected port: a program that listens on another port on localhost may serve only those in its container, such as an nginx.
 */
export function portForwardFor(listeners: readonly Listener[], targetPort: number): PortForward | undefined {
  const first = listeners.find(({ port }) => port === targetPort);
  if (!first || first.scope === 'other' || (first.scope === 'all' && first.family === 4)) return undefined;
  const isOn4 = listeners.some(({ port, family }) => port === targetPort && family === 4);
  const used = new Set(listeners.map(({ port }) => port));
  let port = firstForwardPort;
  while (used.has(port)) port += 1;
  return { port, target: isOn4 ? '127.0.0.1' : '::1', targetPort };
}

/** The largest number of ports that a sentence names: a longer list is hard to read. */
const maxNamed = 5;

/**
 * The ports on which a container listens that does not answer on its port, and what to change. It is the rest of a sentence after
 * "The container" or "It".
 *
 * @param isConfigured - whether the service or the request names the port
 */
export function explainListeners(
  listeners: readonly Listener[],
  { port }: ExpectedPorts,
  isConfigured: boolean,
): string {
  const known = portsOf(listeners);
  if (known.length === 0) return `listens on no TCP port, expected ${port}`;
  const names = known.slice(0, maxNamed).map((each) => {
    return each.isLocal ? `${each.port} (on localhost only)` : String(each.port);
  });
  if (known.some((each) => each.port === port)) {
    return `listens on port ${port} on localhost only: make the application listen on 0.0.0.0, the value of $HOST`;
  }
  const more = known.length > maxNamed ? ['others'] : [];
  const [only] = known.length === 1 ? known : [];
  const setting = only ? `set the service's port to ${only.port}` : `set the service's port to the right one`;
  const advice = isConfigured ? `correct the service's port` : setting;
  return `listens on ${joined([...names, ...more])}, expected ${port}: ${advice}, or make the application listen on $PORT`;
}

interface OpenPort {
  readonly port: number;
  readonly isLocal: boolean;
}

function portsOf(listeners: readonly Listener[]): OpenPort[] {
  const ports = [...new Set(listeners.map(({ port }) => port))].toSorted((one, other) => one - other);
  return ports.map((port) => ({
    port,
    isLocal: listeners.every((each) => each.port !== port || each.scope === 'localhost'),
  }));
}

function joined(names: readonly string[]): string {
  const last = names.at(-1) ?? '';
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`;
}
