/** Asks questions at a terminal. Without a terminal, throws an error that names the option to use instead. */
import { CliError, interruption, usageError } from './errors.ts';
import type { Io } from './session.ts';

/** A question, and the option that answers it without a terminal, such as `--yes`. */
export interface Question {
  readonly message: string;
  readonly instead: string;
}

export class Prompts {
  readonly #io: Io;
  readonly #signal: AbortSignal;
  readonly #allowed: boolean;

  constructor(io: Io, signal: AbortSignal, allowed: boolean) {
    this.#io = io;
    this.#signal = signal;
    this.#allowed = allowed;
  }

  /** Whether the user can be asked. */
  get canAsk(): boolean {
    return this.#allowed && this.#io.stdin.isTTY && this.#io.stderr.isTTY;
  }

  async confirm(question: Question): Promise<boolean> {
    this.#assertCanAsk(question);
    const { confirm } = await import('@clack/prompts');
    return this.#answered(await confirm({ message: question.message, initialValue: false, ...this.#common() }));
  }

  async text(question: Question & { readonly validate?: (text: string) => string | undefined }): Promise<string> {
    this.#assertCanAsk(question);
    const { text } = await import('@clack/prompts');
    const { message, validate } = question;
    const check = validate && ((answer: string | undefined) => validate(answer ?? ''));
    return this.#answered(await text({ message, ...(check && { validate: check }), ...this.#common() }));
  }

  async select(question: Question & { readonly choices: readonly string[] }): Promise<string> {
    this.#assertCanAsk(question);
    const { select } = await import('@clack/prompts');
    const options = question.choices.map((value) => ({ value, label: value }));
    return this.#answered(await select({ message: question.message, options, ...this.#common() }));
  }

  /** Asks for confirmation, unless `--yes` is set. The user types the name, so that an accidental Enter deletes nothing. */
  async confirmDeletion(deletion: {
    readonly what: string;
    readonly name: string;
    readonly yes: boolean;
  }): Promise<void> {
    const { what, name, yes } = deletion;
    if (yes) return;
    if (!this.canAsk) throw usageError(`There is no terminal to ask: ${what}`, 'Use --yes');
    const typed = await this.text({ message: `${what} Type ${name} to continue`, instead: '--yes' });
    if (typed !== name) throw new CliError('Cancelled', `The name is not ${name}: nothing was deleted`);
  }

  #assertCanAsk({ message, instead }: Question): void {
    if (!this.canAsk) throw usageError(`There is no terminal to ask: ${message}`, `Use ${instead}`);
  }

  #common() {
    const { stderr } = this.#io;
    // Terminals of containers and of `script` may report no size, and then each character would be on a separate line.
    if (stderr.columns === 0) Object.assign(stderr, { columns: 80, rows: 24 });
    return { input: this.#io.stdin, output: stderr, signal: this.#signal };
  }

  #answered<T>(answer: T): Exclude<T, symbol> {
    this.#signal.throwIfAborted();
    // Ctrl-C at a prompt arrives as a key, not as a signal.
    if (typeof answer === 'symbol') throw interruption('SIGINT');
    return answer as Exclude<T, symbol>;
  }
}
