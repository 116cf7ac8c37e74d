import { networkInterfaces } from 'node:os';

/**
 * An IPv4 address of this machine besides loopback, or `undefined` if there is none. A client that connects to it looks like one on
 * another machine. Docker and crane accept untrusted certificates from a registry on loopback, but not there.
 */
export function outerAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}
