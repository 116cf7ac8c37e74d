/**
 * The interface of GitHub's runner for actions: commands in the log, and files for outputs, state and the summary.
 * https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface WorkflowIo {
  readonly env: Environment;
  readonly write: (text: string) => void;
}

type FileVariable = 'GITHUB_OUTPUT' | 'GITHUB_STATE' | 'GITHUB_STEP_SUMMARY';

export class Workflow {
  readonly #io: WorkflowIo;

  constructor(io: WorkflowIo) {
    this.#io = io;
  }

  /** Makes the runner replace a secret in the log with `***`. */
  mask(secret: string): void {
    if (secret !== '') this.#command('add-mask', secret);
  }

  /** Prints text that cannot contain commands or control a terminal. */
  info(text: string): void {
    const lines = plain(text).split(/\r\n|\r|\n/);
    // The runner looks for `::` at the start of a line, and for `##[` anywhere.
    for (const line of lines)
      this.#io.write(`${line.replace(/^(\s*):(?=:)/, '$1\u200b:').replaceAll('##[', '#\u200b#[')}\n`);
  }

  notice(text: string): void {
    this.#command('notice', plain(text), { title: 'Berth' });
  }

  warning(text: string): void {
    this.#command('warning', plain(text), { title: 'Berth' });
  }

  error(text: string): void {
    this.#command('error', plain(text), { title: 'Berth' });
  }

  /** Folds the output of `work`. */
  async group<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#command('group', plain(name));
    try {
      return await work();
    } finally {
      this.#command('endgroup', '');
    }
  }

  /** Makes the runner ignore commands in the output of `work`, because builds print text from files and commit messages. */
  async withoutCommands<T>(work: () => Promise<T>): Promise<T> {
    const token = randomUUID();
    this.#command('stop-commands', token);
    try {
      return await work();
    } finally {
      // The last line of a program may have no newline.
      this.#io.write(`\n::${token}::\n`);
    }
  }

  setOutput(name: string, value: string): void {
    this.#append('GITHUB_OUTPUT', keyed(name, value));
  }

  /** Saves a value for the post step, which reads it with `state`. */
  saveState(name: string, value: string): void {
    this.#append('GITHUB_STATE', keyed(name, value));
  }

  state(name: string): string {
    return this.#io.env[`STATE_${name}`] ?? '';
  }

  summary(markdown: string): void {
    if (this.#io.env['GITHUB_STEP_SUMMARY']) this.#append('GITHUB_STEP_SUMMARY', markdown);
  }

  #append(variable: FileVariable, text: string): void {
    const path = this.#io.env[variable];
    if (!path) throw new Error(`${variable} is not set: this program runs as a step of a GitHub workflow`);
    appendFileSync(path, text);
  }

  #command(name: string, data: string, properties: Readonly<Record<string, string>> = {}): void {
    const fields = Object.entries(properties).map(([key, value]) => `${key}=${escapedProperty(value)}`);
    this.#io.write(`::${[name, fields.join(',')].filter(Boolean).join(' ')}::${escapedData(data)}\n`);
  }
}

/** Formats an entry of a command file. The delimiter is random, so that a value cannot end its entry and add others. */
function keyed(name: string, value: string): string {
  const end = `end-${randomUUID()}`;
  return `${name}<<${end}\n${value}\n${end}\n`;
}

/** Text without control characters other than line breaks and tabs. */
function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what is removed
  return text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '');
}

function escapedData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapedProperty(text: string): string {
  return escapedData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
