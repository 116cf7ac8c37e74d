/** A firewall whose programs fail. */
import type fs from 'node:fs';
import { beforeEach, expect, test, vi } from 'vitest';
import { openLog } from '../../core/log/log.ts';
import { openFirewall } from './firewall.ts';
import type { FirewallMode } from './firewall.ts';
import type { Family } from './rules.ts';

/** Every machine has it. */
const bridge = 'lo';
const hooks = ['-A PREROUTING -i lo -j LO-IN', '-A OUTPUT -o lo -j LO-OUT'];

const machine = vi.hoisted(() => ({
  hasIpv6: true,
  /** The family whose rules cannot be written. */
  failing: undefined as string | undefined,
  /** The chains and hooks that exist, by family. */
  rules: { ipv4: new Set<string>(), ipv6: new Set<string>() },
}));

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof fs>();
  const existsSync = (path: string) => (path === '/proc/net/if_inet6' ? machine.hasIpv6 : original.existsSync(path));
  return { ...original, existsSync };
});

vi.mock('./iptables.ts', () => ({
  iptables: async (family: Family, [, , command, ...words]: string[]) => {
    const rules = machine.rules[family];
    const [chain = ''] = words;
    const rule = `-A ${words.join(' ')}`;
    if (command === '-N') return rules.has(chain) ? false : Boolean(rules.add(chain));
    if (command === '-S') return rules.has(chain);
    if (command === '-C') return rules.has(rule);
    if (command === '-I') return Boolean(rules.add(rule));
    return rules.delete(rule);
  },
  iptablesRestore: async (family: Family, text: string) => {
    if (machine.failing === family) throw new Error(`${family} failed: line 2, secret-table`);
    for (const [, chain = ''] of text.matchAll(/^:(\S+)/gm)) machine.rules[family].add(chain);
    for (const [, chain = ''] of text.matchAll(/^-X (\S+)/gm)) machine.rules[family].delete(chain);
  },
}));

beforeEach(() => {
  Object.assign(machine, { hasIpv6: true, failing: undefined });
  for (const rules of Object.values(machine.rules)) rules.clear();
});

const logged: string[] = [];
const log = openLog('warn', { write: (line) => void logged.push((JSON.parse(line) as { msg: string }).msg) });

async function open(mode: FirewallMode) {
  logged.length = 0;
  return await openFirewall({ mode, rules: { bridge, subnet: '10.1.2.0/24', users: [0] }, log });
}

test('a set-up that fails for IPv6 leaves no rules for IPv4, neither its own nor those of an earlier worker', async () => {
  await open('auto');
  expect([...machine.rules.ipv4]).toEqual(expect.arrayContaining([...hooks, 'LO-IN', 'LO-OUT', 'LO-EGRESS']));
  machine.failing = 'ipv6';
  machine.rules.ipv6.clear();
  const firewall = await open('auto');
  expect([...machine.rules.ipv4, ...machine.rules.ipv6]).toEqual([]);
  expect(logged).toEqual([expect.stringContaining('Backends can reach the services of this machine')]);
  await expect(firewall.admit('10.1.2.3', 'none')).rejects.toThrow('it cannot be set up');
});

test('rules that cannot be removed after a failed set-up are logged', async () => {
  await open('auto');
  machine.failing = 'ipv4';
  await open('auto');
  expect(logged).toEqual([
    'Cannot remove the firewall rules of an address family, so they stay active',
    expect.stringContaining('Backends can reach the services of this machine'),
  ]);
});

test('a required firewall opens on a machine without IPv6', async () => {
  Object.assign(machine, { hasIpv6: false, failing: 'ipv6' });
  const firewall = await open('required');
  expect([...machine.rules.ipv4]).toEqual(expect.arrayContaining(hooks));
  await firewall.remove();
  expect([...machine.rules.ipv4]).toEqual([]);
});

test('the owner of a backend does not see the output of iptables, which is the cause of the error', async () => {
  const firewall = await open('required');
  machine.failing = 'ipv4';
  await expect(firewall.admit('10.1.2.3', 'none')).rejects.toMatchObject({
    message: 'The node could not write the firewall rules of the backend',
    cause: { message: 'ipv4 failed: line 2, secret-table' },
  });
});
