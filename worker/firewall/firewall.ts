/** The firewall of a node's bridge: blocks backends from this machine's services and from cloud metadata, and limits their egress. */
import { existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import type { Log } from '../../core/log/log.ts';
import { KeyedMutex } from '../../core/async/keyed-mutex.ts';
import { iptables, iptablesRestore } from './iptables.ts';
import { bridgeRules, chainsOf, egressRules, firstEgressRules, hooksOf, noRules } from './rules.ts';
import type { BridgeRules, Family } from './rules.ts';
import type { Egress } from '../../contract/egress.ts';

/** `auto`: a warning if it is impossible. `required`: the worker does not open without it. */
export type FirewallMode = 'auto' | 'required' | 'off';

export interface Firewall {
  /** Writes the rules of a backend before it starts. Throws if its egress is limited and there is no firewall. */
  admit(address: string, egress: Egress): Promise<void>;
  /** Deletes the rules of the backend with this address, which has ended. */
  release(address: string): Promise<void>;
  /** Called when every running backend was admitted: deletes the rules of others. */
  settle(): Promise<void>;
  /** Writes the rules again if another program has deleted them. Does nothing before `settle`. */
  repair(): Promise<void>;
  /** Deletes all rules. */
  remove(): Promise<void>;
}

export interface FirewallDeps {
  readonly mode: FirewallMode;
  readonly rules: BridgeRules;
  readonly log: Log;
}

const inTable = ['-t', 'mangle'] as const;

/** Writes the rules of the bridge. Throws if they are required and cannot be written; the error says what to do. */
export async function openFirewall({ mode, rules, log }: FirewallDeps): Promise<Firewall> {
  if (mode === 'off') return noFirewall('it is turned off on this node (BERTH_FIREWALL)');
  try {
    await assertOwnBridge(rules.bridge);
    await writeBridgeRules(rules);
    return new IptablesFirewall(rules, log);
  } catch (error) {
    const problem = `The firewall cannot be set up: ${(error as Error).message}`;
    if (mode === 'required') throw new Error(problem, { cause: error });
    await removeRemainder(rules.bridge, log);
    log.warn(
      { bridge: rules.bridge, why: (error as Error).message },
      'Backends can reach the services of this machine, because the firewall cannot be set up, see docs/applications.md',
    );
    return noFirewall('it cannot be set up');
  }
}

/** Throws if the bridge is not on this machine: the engine is remote, or this process is in a container. */
async function assertOwnBridge(bridge: string): Promise<void> {
  await access(`/sys/class/net/${bridge}`).catch(() => {
    throw new Error(`The bridge ${bridge} of the Docker Engine is not in the network namespace of this process`);
  });
}

/** The address families of this machine. If IPv6 is disabled in the kernel, ip6tables fails, and there are no packets to drop. */
function families(): readonly Family[] {
  return existsSync('/proc/net/if_inet6') ? ['ipv4', 'ipv6'] : ['ipv4'];
}

async function writeBridgeRules(rules: BridgeRules): Promise<void> {
  const { bridge } = rules;
  // Fails if the chain exists: it holds the rules of backends that an earlier worker started.
  await iptables('ipv4', [...inTable, '-N', chainsOf(bridge).egress]);
  for (const family of families()) {
    await iptablesRestore(family, bridgeRules(rules, family));
    for (const hook of hooksOf(bridge)) {
      if (await iptables(family, [...inTable, '-C', ...hook])) continue;
      if (!(await iptables(family, [...inTable, '-I', ...hook])))
        throw new Error(`Cannot add the rule "${hook.join(' ')}"`);
    }
  }
}

/** Deletes the rules that a failed set-up or an earlier worker has left, so that none outlast a worker without a firewall. */
async function removeRemainder(bridge: string, log: Log): Promise<void> {
  for (const family of families()) {
    const hasRules = await iptables(family, [...inTable, '-S', chainsOf(bridge).in]).catch(() => false);
    if (!hasRules) continue;
    await deleteRules(bridge, family).catch((error: unknown) => {
      log.warn(
        { err: error, bridge, family },
        'Cannot remove the firewall rules of an address family, so they stay active',
      );
    });
  }
}

async function deleteRules(bridge: string, family: Family): Promise<void> {
  for (const hook of hooksOf(bridge)) await iptables(family, [...inTable, '-D', ...hook]);
  await iptablesRestore(family, noRules(bridge, family));
}

/** Whether packets of the bridge pass the rules. A service that restores its own rules, or `iptables -F`, ends that. */
async function isHooked(bridge: string): Promise<boolean> {
  for (const family of families()) {
    for (const hook of hooksOf(bridge)) if (!(await iptables(family, [...inTable, '-C', ...hook]))) return false;
  }
  return true;
}

class IptablesFirewall implements Firewall {
  readonly #rules: BridgeRules;
  readonly #log: Log;
  readonly #writes = new KeyedMutex();
  /** The backends whose egress is limited, by address. */
  readonly #limited = new Map<string, Egress>();
  #isSettled = false;

  constructor(rules: BridgeRules, log: Log) {
    this.#rules = rules;
    this.#log = log;
  }

  get #bridge(): string {
    return this.#rules.bridge;
  }

  async admit(address: string, egress: Egress): Promise<void> {
    await this.#admit(address, egress).catch((error: unknown) => {
      // The owner of the backend reads the message, and the operator reads the cause, which is the output of iptables.
      throw new Error('The node could not write the firewall rules of the backend', { cause: error });
    });
  }

  async #admit(address: string, egress: Egress): Promise<void> {
    if (egress !== 'open') this.#limited.set(address, egress);
    else if (!this.#limited.delete(address) && this.#isSettled) return;
    if (egress !== 'open') await this.repair();
    await this.#write(
      this.#isSettled ? egressRules(this.#bridge, this.#limited) : firstEgressRules(this.#bridge, address, egress),
    );
  }

  async release(address: string): Promise<void> {
    if (this.#limited.delete(address) && this.#isSettled) await this.#write(egressRules(this.#bridge, this.#limited));
  }

  async settle(): Promise<void> {
    this.#isSettled = true;
    await this.#write(egressRules(this.#bridge, this.#limited));
  }

  async repair(): Promise<void> {
    if (!this.#isSettled) return;
    await this.#writes.run('', async () => {
      if (await isHooked(this.#bridge)) return;
      this.#log.error({ bridge: this.#bridge }, 'Another program deleted the firewall rules, restoring them');
      await writeBridgeRules(this.#rules);
      await iptablesRestore('ipv4', egressRules(this.#bridge, this.#limited));
    });
  }

  async remove(): Promise<void> {
    await this.#writes.run('', async () => {
      for (const family of families()) await deleteRules(this.#bridge, family);
    });
  }

  /** Writes in the order of the calls, because each write contains the state at its call. */
  async #write(rules: string): Promise<void> {
    await this.#writes.run('', async () => await iptablesRestore('ipv4', rules));
  }
}

function noFirewall(why: string): Firewall {
  return {
    admit: async (_address, egress) => {
      if (egress !== 'open') throw new Error(`This service limits egress, which needs a firewall, and ${why}`);
    },
    release: async () => {},
    settle: async () => {},
    repair: async () => {},
    remove: async () => {},
  };
}
