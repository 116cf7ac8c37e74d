import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/**
 * Runs a script of this folder, kills it (SIGKILL) when it has printed `afterLines` lines, and returns all lines that it printed,
 * including the lines between the kill and the end.
 */
export async function runUntilKilled(script: string, args: readonly string[], afterLines: number): Promise<string[]> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const lines: string[] = [];
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line);
      if (lines.length === afterLines) child.kill('SIGKILL');
    }
  } finally {
    child.kill('SIGKILL');
  }
  const [, signal] = (await exited) as [number | null, NodeJS.Signals | null];
  if (signal !== 'SIGKILL') throw new Error(`${script} ended by itself after ${lines.length} lines`);
  return lines;
}
