/** Runs iptables, which every machine with a Docker Engine has: the engine itself depends on it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Family } from './rules.ts';

/** Other programs may change rules at the same time. */
const waitSeconds = 30;

const programs = { ipv4: 'iptables', ipv6: 'ip6tables' } as const;

/** Where systems install iptables. The PATH of a service often lacks the folders for administrators. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Runs a command. Returns whether it succeeded; throws only if the program cannot be run. */
export async function iptables(family: Family, args: readonly string[]): Promise<boolean> {
  return (await run(programs[family], ['--wait', String(waitSeconds), ...args])).code === 0;
}

/** Applies rules in the form of `iptables-save` to a table, all of them or none. Chains that they declare are rewritten. */
export async function iptablesRestore(family: Family, rules: string): Promise<void> {
  const program = `${programs[family]}-restore`;
  const { code, problem } = await run(program, ['--noflush', '--wait', String(waitSeconds)], rules);
  if (code !== 0) throw new Error(`${program} failed: ${problem.trim() || `exit code ${code}`}`);
}

async function run(
  program: string,
  args: readonly string[],
  input = '',
): Promise<{ code: number | null; problem: string }> {
  const child = spawn(program, args, { env: { PATH: path }, stdio: ['pipe', 'ignore', 'pipe'] });
  // A program that does not start, or ends early, leaves its input unread: its exit says why.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const [problem, [code]] = await Promise.all([text(child.stderr), once(child, 'close') as Promise<[number | null]>]);
  return { code, problem };
}
