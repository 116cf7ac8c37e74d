/** Prints data to standard output and messages to standard error. */
import { createColors } from 'picocolors';
import { redact } from '../errors.ts';
import type { ErrorReport } from '../errors.ts';
import { safeJson, safeText } from './safe-text.ts';

export type Colors = ReturnType<typeof createColors>;

/** A stream of the process. */
export interface OutputStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export interface OutputOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether data is printed as JSON. */
  readonly json: boolean;
}

export class Output {
  readonly json: boolean;
  /** Colours for standard output. */
  readonly colors: Colors;
  /** Colours for standard error. */
  readonly messageColors: Colors;
  readonly #stdout: OutputStream;
  readonly #stderr: OutputStream;

  constructor({ stdout, stderr, env, json }: OutputOptions) {
    this.json = json;
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.colors = createColors(!json && showsColors(stdout, env));
    this.messageColors = createColors(showsColors(stderr, env));
  }

  /** Prints data: the value as one line of JSON, or the text. Both must be safe for a terminal. */
  data(value: unknown, text: string): void {
    if (this.json) this.#stdout.write(`${safeJson(value)}\n`);
    else if (text !== '') this.#stdout.write(`${text}\n`);
  }

  /** Prints a message, which must be safe for a terminal. */
  message(text: string): void {
    this.#stderr.write(`${text}\n`);
  }

  /** Prints a result: `value` as data with `--json`, otherwise the sentence as a message, because scripts use the exit code. */
  done(value: unknown, sentence: string): void {
    if (this.json) this.data(value, '');
    else this.message(safeText(sentence));
  }

  warning(text: string): void {
    this.message(`${this.messageColors.yellow('Warning:')} ${safeText(text)}`);
  }

  error({ exitCode: _exitCode, ...report }: ErrorReport): void {
    if (this.json) {
      this.message(safeJson({ error: report }));
      return;
    }
    const { red, dim } = this.messageColors;
    this.message(`${red('Error:')} ${safeText(report.message)}`);
    if (report.hint !== undefined) this.message(redact(safeText(report.hint)));
    if (report.id !== undefined) this.message(dim(`${safeText(report.code)}, request ${safeText(report.id)}`));
  }
}

/** The conventions of no-color.org and of CLICOLOR. */
function showsColors({ isTTY }: OutputStream, env: OutputOptions['env']): boolean {
  if (env['NO_COLOR']) return false;
  if (env['CLICOLOR_FORCE'] && env['CLICOLOR_FORCE'] !== '0') return true;
  return isTTY === true && env['TERM'] !== 'dumb' && env['CLICOLOR'] !== '0';
}
