/** The quality gates: programs that check the sources without running the product. */
import { Semaphore } from '../../core/async/semaphore.ts';
import { tryCommand } from '../../setup/command.ts';

export interface GateRun {
  /** Commands by name. They are words with spaces between them, without quotes. */
  readonly gates: Readonly<Record<string, string>>;
  /** The number of gates that run at a time. */
  readonly concurrency: number;
  readonly print: (text: string) => void;
}

/**
 * Runs all gates to their end, several at a time. Prints them in the order of the list: a line with the duration, and the output of a
 * failed gate. Returns the names of the failed gates.
 */
export async function runGates({ gates, concurrency, print }: GateRun): Promise<string[]> {
  const permits = new Semaphore(concurrency);
  const runs = Object.entries(gates).map(([name, command]) => ({ name, ending: runGate(command, permits) }));
  const failed: string[] = [];
  for (const { name, ending } of runs) {
    const { code, output, seconds } = await ending;
    print(`${code === 0 ? '✓' : '✗'} ${name} (${seconds.toFixed(1)} s)\n`);
    if (code === 0) continue;
    print(output);
    failed.push(name);
  }
  return failed;
}

async function runGate(command: string, permits: Semaphore) {
  using _permit = await permits.acquire();
  const startedAt = performance.now();
  const [program = '', ...args] = command.split(' ');
  const { code, stdout, stderr } = await tryCommand(program, args);
  return { code, output: stdout + stderr, seconds: (performance.now() - startedAt) / 1_000 };
}
