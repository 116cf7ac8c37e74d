/** How set-up talks to the person who started it: plain lines, and progress for whatever takes longer than a second. */
import { clearLine, cursorTo } from 'node:readline';
import type { WriteStream } from 'node:tty';
import { styleText } from 'node:util';

export interface Terminal {
  /** Whether a person reads along, and not a file, which others may read later. */
  readonly isInteractive: boolean;
  /** One line, or several. */
  readonly say: (text: string) => void;
  /** Does `work`, and shows that it goes on once it has taken a second. `detail` adds a few words, such as a percentage. */
  readonly during: <T>(what: string, work: (detail: (words: string) => void) => Promise<T>) => Promise<T>;
  readonly bold: (text: string) => string;
  readonly faint: (text: string) => string;
}

/** What is over sooner needs no progress. */
const quietMs = 1_000;

const spinnerFrames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const spinnerMs = 100;

/** Where nothing can be animated (a pipe, a CI log), a line this often. */
const lineMs = 10_000;

/** Talks on a stream, in colours and with a spinner only if it is a terminal (and, for colours, NO_COLOR is not set). */
export function openTerminal(stream: WriteStream): Terminal {
  const style = (format: 'bold' | 'dim' | 'green' | 'red', text: string) => styleText(format, text, { stream });
  const say = (text: string) => void stream.write(`${text}\n`);

  async function during<T>(what: string, work: (detail: (words: string) => void) => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
    let words = '';
    const progress = showProgress(stream, () => `${what} … ${seconds()} s${words && `, ${words}`}`);
    try {
      const result = await work((next) => (words = next));
      if (progress.stop()) say(`${style('green', '✓')} ${what} ${style('dim', `(${seconds()} s)`)}`);
      return result;
    } catch (error) {
      if (progress.stop()) say(`${style('red', '✗')} ${what}`);
      throw error;
    }
  }

  const isInteractive = stream.isTTY;
  return { isInteractive, say, during, bold: (text) => style('bold', text), faint: (text) => style('dim', text) };
}

/** Shows a changing line from the first second on. `stop` says whether anything was shown. */
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
