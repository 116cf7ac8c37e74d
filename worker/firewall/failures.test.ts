/** The firewall when iptables fails, with real rules in a network namespace of its own, where they affect no other program. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { whyNoTests } from '../testing/test-platform.ts';

const why = (await whyNoTests()) ?? (process.getuid?.() === 0 ? undefined : '(only root can)');

/** Opens firewalls for the loopback interface, which every namespace has. The first programs on the worker's path are in `programs`. */
const preamble = `
import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { openLog } from '${join(import.meta.dirname, '../../core/log/log.ts')}';
import { openFirewall } from '${join(import.meta.dirname, 'firewall.ts')}';
const programs = '/usr/local/sbin';
const logged = [];
const log = openLog('warn', { write: (line) => void logged.push(JSON.parse(line).msg) });
const open = async (mode) => await openFirewall({ mode, rules: { bridge: 'lo', subnet: '10.1.2.0/24', users: [0] }, log });
const failing = (program) => {
  writeFileSync(programs + '/' + program, '#!/bin/sh\\ncat > /dev/null; echo "line 2: a secret" >&2; exit 1\\n');
  chmodSync(programs + '/' + program, 0o755);
};
const rules = () => ['iptables', 'ip6tables'].flatMap((program) =>
  execFileSync(program, ['-t', 'mangle', '-S'], { encoding: 'utf8' }).split('\\n').filter((line) => line.includes('LO-')));
const report = (result) => void process.stdout.write(JSON.stringify(result));
`;

/** Runs lines after the preamble in new namespaces for the network and for mounts, and returns what they report. */
async function run(lines: string): Promise<unknown> {
  const shell = 'mount -t tmpfs none /usr/local/sbin && exec "$0" --input-type=module --eval "$1"';
  const args = ['--net', '--mount', 'sh', '-c', shell, process.execPath, preamble + lines];
  return JSON.parse(await runCommand('unshare', args));
}

const noFirewall = expect.stringContaining('Backends can reach the services of this machine');

describe.skipIf(why !== undefined)(`a firewall whose programs fail ${why ?? ''}`, () => {
  test('leaves no rules for IPv4 if the rules for IPv6 fail, neither its own nor those of an earlier worker', async () => {
    const { before, after, logged } = (await run(`
      await open('auto');
      const before = rules().length;
      failing('ip6tables-restore');
      execFileSync('ip6tables', ['-t', 'mangle', '-F']);
      for (const chain of ['LO-IN', 'LO-OUT']) execFileSync('ip6tables', ['-t', 'mangle', '-X', chain]);
      await open('auto');
      report({ before, after: rules(), logged });
    `)) as { before: number; after: string[]; logged: string[] };
    expect(before).toBeGreaterThan(0);
    expect([after, logged]).toEqual([[], [noFirewall]]);
  });

  test('logs rules that it cannot remove', async () => {
    const { left, logged } = (await run(`
      await open('auto');
      failing('iptables-restore');
      await open('auto');
      report({ left: rules().length, logged });
    `)) as { left: number; logged: string[] };
    expect(left).toBeGreaterThan(0);
    expect(logged).toEqual(['Cannot remove the firewall rules of an address family, so they stay active', noFirewall]);
  });

  test('hides the output of iptables from the owner of a backend, and keeps it as the cause', async () => {
    const { message, cause } = (await run(`
      const firewall = await open('required');
      failing('iptables-restore');
      const error = await firewall.admit('10.1.2.3', 'none').catch((each) => each);
      report({ message: error.message, cause: error.cause.message });
    `)) as { message: string; cause: string };
    expect(message).toBe('The node could not write the firewall rules of the backend');
    expect(cause).toContain('line 2: a secret');
  });
});
