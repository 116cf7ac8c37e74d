/** The output of setup: plain lines, and progress for steps that take longer than a second. */
import { clearLine, cursorTo } from 'node:readline';
import type { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

export interface Terminal {
  /** Whether the output is a terminal, and not a file that others may read later. */
  readonly isInteractive: boolean;
  /** Prints one or several lines. */
  readonly print: (text: string) => void;
  /** Runs `work`, and shows progress after a second. `detail` adds a few words to it, such as a percentage. */
  readonly withProgress: <T>(what: string, work: (detail: (words: string) => void) => Promise<T>) => Promise<T>;
  readonly bold: (text: string) => string;
  readonly faint: (text: string) => string;
}

/** Progress is shown only for steps that take longer than this. */
const quietMs = 1_000;

const spinnerFrames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const spinnerMs = 100;

/** How often a line is printed where nothing can be animated (a pipe, a CI log). */
const lineMs = 10_000;

/** Writes to a stream, with a spinner if it is a terminal, and with colours if NO_COLOR is not set, too. */
export function openTerminal(stream: WriteStream): Terminal {
  const style = (format: 'bold' | 'dim' | 'green' | 'red', text: string) => styleText(format, text, { stream });
  const print = (text: string) => void stream.write(`${text}\n`);

  async function withProgress<T>(what: string, work: (detail: (words: string) => void) => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
    let words = '';
    const progress = showProgress(stream, () => `${what} … ${seconds()} s${words && `, ${words}`}`);
    try {
      const result = await work((next) => (words = next));
      if (progress.stop()) print(`${style('green', '✓')} ${what} ${style('dim', `(${seconds()} s)`)}`);
      return result;
    } catch (error) {
      if (progress.stop()) print(`${style('red', '✗')} ${what}`);
      throw error;
    }
  }

  const isInteractive = stream.isTTY;
  return {
    isInteractive,
    print,
    withProgress,
    bold: (text) => style('bold', text),
    faint: (text) => style('dim', text),
  };
}

/** Shows a line that changes, after the first second. `stop` returns whether anything was shown. */
function showProgress(stream: WriteStream, line: () => string): { stop: () => boolean } {
  const animated = stream.isTTY;
  let shown = false;
  let frame = 0;
  const show = () => {
    shown = true;
    frame = (frame + 1) % spinnerFrames.length;
    if (animated) wipe(stream);
    stream.write(animated ? `${spinnerFrames[frame]} ${line()}`.slice(0, stream.columns - 1) : `${line()}\n`);
  };
  let repeat: NodeJS.Timeout | undefined;
  const first = setTimeout(() => {
    show();
    repeat = setInterval(show, animated ? spinnerMs : lineMs);
  }, quietMs);
  return {
    stop() {
      clearTimeout(first);
      clearInterval(repeat);
      if (shown && animated) wipe(stream);
      return shown;
    },
  };
}

function wipe(stream: WriteStream): void {
  clearLine(stream, 0);
  cursorTo(stream, 0);
}
