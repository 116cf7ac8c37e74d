/**
 * The DNS servers of a backend. A look-up can carry data out, so a backend whose egress is limited uses only servers within its
 * networks. The firewall alone cannot enforce this: the engine itself sends the look-ups to servers at loopback of the machine.
 */
import { readFile } from 'node:fs/promises';
import { BlockList, isIPv4 } from 'node:net';
import type { Egress } from '../../contract/egress.ts';

/** Loopback of the container, where no server listens. Without a server, the engine would use those of the machine. */
const noServer = '127.0.0.1';

/** The files that list a machine's servers. On many machines, the first lists a server of systemd at loopback, the second its upstreams. */
const resolverFiles = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'] as const;

interface DnsSources {
  /** The servers in the node's settings. */
  readonly configured?: readonly string[] | undefined;
  readonly files?: readonly string[];
}

/** The servers that the engine asks for a backend. `undefined`: those of the machine, or of the engine's own configuration. */
export async function dnsServersFor(
  egress: Egress,
  { configured, files = resolverFiles }: DnsSources = {},
): Promise<readonly string[] | undefined> {
  if (egress === 'open') return configured;
  if (egress === 'none') return [noServer];
  const allowed = new BlockList();
  for (const network of egress) {
    const [address = '', bits = ''] = network.split('/');
    allowed.addSubnet(address, Number(bits));
  }
  const servers = (configured ?? (await serversIn(files))).filter((address) => allowed.check(address));
  return servers.length === 0 ? [noServer] : servers;
}

/** The servers in these files that a container can reach, without duplicates. */
async function serversIn(files: readonly string[]): Promise<string[]> {
  const texts = await Promise.all(files.map(async (file) => await readFile(file, 'utf8').catch(() => '')));
  const named = texts.flatMap((text) =>
    Array.from(text.matchAll(/^nameserver[ \t]+(\S+)/gm), ([, address = '']) => address),
  );
  return [...new Set(named)].filter((address) => isIPv4(address) && !address.startsWith('127.'));
}
