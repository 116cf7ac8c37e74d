import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type Docker from 'dockerode';
import type { Log } from '../../core/log/log.ts';
import { AddressPool } from './address-pool.ts';
import { EngineError, callEngineUnless, engineError } from './engine-error.ts';
import { dataFolderLabels, nodeLabel } from './labels.ts';
import type { DataFolderIdentity } from './labels.ts';
import { candidateSubnets, formatAddress, formatSubnet, parseRoutes, parseSubnet } from './subnets.ts';
import type { Subnet } from './subnets.ts';

const isolationOption = 'com.docker.network.bridge.enable_icc';

const bridgeOption = 'com.docker.network.bridge.name';

/** Upper bound on subnets to try: other networks rarely use more than a few. */
const maxTries = 64;

interface NetworkOptions {
  readonly node: string;
  readonly dataFolder?: DataFolderIdentity | undefined;
  readonly log: Log;
}

/** The network of this node's backends. */
export class Network {
  readonly name: string;
  /** The name of its bridge, a network interface of the engine's machine. */
  readonly bridge: string;
  readonly #docker: Docker;
  readonly #options: NetworkOptions;
  #addresses: AddressPool | undefined;
  #subnet: string | undefined;
  #ensuring: Promise<void> | undefined;

  constructor(docker: Docker, options: NetworkOptions) {
    this.name = `berth-${options.node}`;
    this.bridge = bridgeName(options.node);
    this.#docker = docker;
    this.#options = options;
  }

  /** Creates the network if it does not exist: `docker network prune` removes it while no backend runs. */
  async ensure(): Promise<void> {
    // Several backends may notice at once that the network is missing.
    this.#ensuring ??= this.#ensure().finally(() => {
      this.#ensuring = undefined;
    });
    await this.#ensuring;
  }

  get addresses(): AddressPool {
    if (!this.#addresses) throw new Error('The network is not open yet');
    return this.#addresses;
  }

  /** In CIDR notation. */
  get subnet(): string {
    if (this.#subnet === undefined) throw new Error('The network is not open yet');
    return this.#subnet;
  }

  async #ensure(): Promise<void> {
    const found = (await this.#inspect()) ?? (await this.#create());
    const subnet = found.IPAM?.Config?.[0]?.['Subnet'];
    const isOurs = found.Labels?.[nodeLabel] === this.#options.node && found.Options?.[bridgeOption] === this.bridge;
    if (!isOurs || !subnet || found.Options?.[isolationOption] !== 'false') {
      throw new EngineError(
        'refused',
        `A Docker network named "${this.name}" exists that this node did not create: remove it, or set BERTH_NODE to another name`,
      );
    }
    if (this.#addresses && this.#subnet === subnet) return;
    this.#subnet = subnet;
    this.#addresses = new AddressPool(parseSubnet(subnet), [gatewayOf(found, subnet), ...addressesIn(found)]);
    this.#options.log.info({ network: this.name, subnet }, 'Network is ready');
  }

  async #inspect(): Promise<Docker.NetworkInspectInfo | undefined> {
    return await callEngineUnless('no-network', () => this.#docker.getNetwork(this.name).inspect());
  }

  async #create(): Promise<Docker.NetworkInspectInfo> {
    let conflict: EngineError | undefined;
    for (const subnet of await this.#candidates()) {
      try {
        await this.#docker.createNetwork({
          Name: this.name,
          CheckDuplicate: true,
          Driver: 'bridge',
          // Containers on it cannot reach each other, and the rules of the firewall name its bridge.
          Options: { [isolationOption]: 'false', [bridgeOption]: this.bridge },
          Labels: { ...dataFolderLabels(this.#options.dataFolder), [nodeLabel]: this.#options.node },
          IPAM: { Driver: 'default', Config: [{ Subnet: formatSubnet(subnet) }] },
        });
        const created = await this.#inspect();
        if (created) return created;
      } catch (error) {
        conflict = engineError(error);
        if (!/overlap|conflict/i.test(conflict.message)) throw conflict;
      }
    }
    const message = 'No subnet is free for the network of backends, remove Docker networks that are not used';
    throw new EngineError('refused', message, { cause: conflict });
  }

  async #candidates(): Promise<Subnet[]> {
    const previous = this.#subnet === undefined ? [] : [parseSubnet(this.#subnet)];
    // Without the routes (not Linux, or not readable), the engine still refuses subnets that overlap its own networks.
    const routes = await readFile('/proc/net/route', 'utf8').catch(() => '');
    return [...previous, ...candidateSubnets(this.#options.node, parseRoutes(routes))].slice(0, maxTries);
  }
}

/** The name of a node's bridge: the kernel allows 15 characters. */
function bridgeName(node: string): string {
  return `berth${createHash('sha256').update(node).digest('hex').slice(0, 10)}`;
}

function gatewayOf(network: Docker.NetworkInspectInfo, subnet: string): string {
  return network.IPAM?.Config?.[0]?.['Gateway'] ?? formatAddress(parseSubnet(subnet).base + 1);
}

function addressesIn(network: Docker.NetworkInspectInfo): string[] {
  return Object.values(network.Containers ?? {}).map(({ IPv4Address }) => IPv4Address.split('/')[0] ?? '');
}
