/** A program in its own terminal, and the screen of that terminal. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink } from 'node:fs/promises';
import xterm from '@xterm/headless';
import { runCommand } from '../../../setup/command.ts';
import { inTerminal, quoted } from './running-program.ts';
import { untilOutput } from './until-output.ts';

interface TerminalOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly columns: number;
  readonly rows: number;
}

export class PseudoTerminal {
  readonly ended: Promise<number | null>;
  readonly #child;
  readonly #terminal;
  #written = '';
  #onChange: () => void = () => {};

  constructor(command: readonly string[], { cwd, env, columns, rows }: TerminalOptions) {
    // `stty -a` prints the mode in which the program has left the terminal.
    const line = `stty rows ${rows} cols ${columns}; ${quoted(command)}; code=$?; stty -a; exit $code`;
    this.#terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
    const [program = '', ...args] = inTerminal(line);
    this.#child = spawn(program, args, {
      cwd,
      env: { TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
      stdio: 'pipe',
    });
    this.#child.stdout.on('data', (chunk: Buffer) => {
      this.#written += chunk.toString('latin1');
      this.#terminal.write(chunk, () => this.#onChange());
    });
    this.ended = once(this.#child, 'close').then(async ([code]) => {
      // The terminal reads in its own time.
      await new Promise<void>((resolve) => this.#terminal.write('', resolve));
      return code as number | null;
    });
  }

  /** The screen of the terminal, a line for each row. */
  get text(): string {
    const { active } = this.#terminal.buffer;
    return Array.from(
      { length: this.#terminal.rows },
      (_, row) => active.getLine(active.viewportY + row)?.translateToString(true) ?? '',
    ).join('\n');
  }

  /** Whether the program draws on the alternate screen. */
  get isAlternate(): boolean {
    return this.#terminal.buffer.active.type === 'alternate';
  }

  /** All that the program has written, control sequences included, in Latin-1. */
  get written(): string {
    return this.#written;
  }

  /** Waits until the terminal shows a pattern, and returns the first group. */
  async shows(pattern: RegExp): Promise<string> {
    const match = await untilOutput(() => pattern.exec(this.text) ?? undefined, {
      onNext: (call) => (this.#onChange = call),
      ended: this.ended,
    });
    if (match) return match[1] ?? '';
    throw new Error(`Ended without ${String(pattern)}:\n${this.text}`);
  }

  press(keys: string): void {
    this.#child.stdin.write(keys);
  }

  async resize(columns: number, rows: number): Promise<void> {
    this.#terminal.resize(columns, rows);
    await runCommand('stty', ['-F', await this.#device(), 'cols', String(columns), 'rows', String(rows)]);
  }

  /** The terminal as the program has it: the standard input of the child of `script`. */
  async #device(): Promise<string> {
    for (const process of await readdir('/proc')) {
      const status = await readFile(`/proc/${process}/status`, 'utf8').catch(() => '');
      if (status.includes(`\nPPid:\t${this.#child.pid}\n`)) return await readlink(`/proc/${process}/fd/0`);
    }
    throw new Error('The program has no terminal');
  }
}
