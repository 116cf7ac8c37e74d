/** The screen of the development server: draws on a terminal, and restores it at the end. */
import { emitKeypressEvents } from 'node:readline';
import type { Key } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import { linesFor } from '../report.ts';
import type { DevEvent } from '../report.ts';
import { Board } from './board.ts';
import { charactersOf, frameOf, rowsOfEntry } from './frame.ts';
import type { Row, RowStyle } from './frame.ts';

export interface ScreenOptions {
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
  /** Whether to use colours. */
  readonly colors: boolean;
  /** Called when Ctrl-C is pressed. */
  readonly onInterrupt: () => void;
}

/** The alternate screen without a cursor, where lines that are too long are cut off and the mouse wheel scrolls (xterm's control sequences). */
const enterSequence = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[?1007h';
const leaveSequence = '\u001b[?1007l\u001b[?7h\u001b[?25h\u001b[?1049l';

/** Synchronized updates: terminals that support them show everything in between at once. */
const [beginUpdate, endUpdate] = ['\u001b[?2026h', '\u001b[?2026l'];

/** At most 20 frames a second: many lines of a build arrive at a time, and more frames are not visible. */
const drawEveryMs = 50;

/** Redraws once a second, because the table shows for how many seconds backends have run. */
const tickMs = 1_000;

/** How many lines of the log stay on the terminal after the screen was closed. */
const leftLines = 20;

/** When the screen returns if Ctrl-Z has not stopped the process, which happens where no shell could resume it. */
const unstoppedMs = 200;

/** Opens the screen. Disposing it restores the terminal and leaves the last lines of the log there. */
export function openScreen(options: ScreenOptions): { readonly report: (event: DevEvent) => void } & Disposable {
  const screen = new Screen(options);
  screen.open();
  return { report: (event) => screen.report(event), [Symbol.dispose]: () => screen.close() };
}

class Screen {
  readonly #options: ScreenOptions;
  readonly #board = new Board();
  readonly #restored = new AbortController();
  #isShown = false;
  /** The text of each row on the terminal. */
  #drawn: string[] = [];
  #scroll = 0;
  /** How many rows a page of the log has. */
  #pageRows = 1;
  #drawing: NodeJS.Timeout | undefined;
  #drawnAtMs = 0;

  constructor(options: ScreenOptions) {
    this.#options = options;
  }

  open(): void {
    const { stdin, stdout } = this.#options;
    emitKeypressEvents(stdin);
    const onKey = (_text: string | undefined, key: Key) => this.#press(key);
    const onResize = () => this.#redraw();
    const onContinue = () => this.#enter();
    const onExit = () => this.#leave();
    stdin.on('keypress', onKey);
    stdout.on('resize', onResize);
    process.on('SIGCONT', onContinue);
    // A second Ctrl-C or an error ends the process without `close`.
    process.once('exit', onExit);
    const ticking = setInterval(() => this.#plan(), tickMs).unref();
    this.#restored.signal.addEventListener('abort', () => {
      stdin.off('keypress', onKey);
      stdout.off('resize', onResize);
      process.off('SIGCONT', onContinue);
      process.off('exit', onExit);
      clearInterval(ticking);
      clearTimeout(this.#drawing);
    });
    this.#enter();
  }

  report(event: DevEvent): void {
    if (this.#restored.signal.aborted) return this.#print(linesFor(event));
    const before = this.#board.log.length;
    this.#board.apply(event, Date.now());
    // If the user has scrolled up, the same lines stay visible.
    if (this.#scroll > 0) {
      for (const entry of this.#board.log.slice(before)) this.#scroll += rowsOfEntry(entry, this.#columns);
    }
    this.#plan();
  }

  close(): void {
    if (this.#restored.signal.aborted) return;
    this.#restored.abort();
    this.#leave();
    this.#options.stdin.pause();
    this.#print(this.#board.log.slice(-leftLines).map(({ text }) => text));
  }

  #print(lines: readonly string[]): void {
    for (const line of lines) this.#options.stdout.write(`${line}\n`);
  }

  #enter(): void {
    const { stdin, stdout } = this.#options;
    this.#isShown = true;
    stdin.setRawMode(true);
    stdin.resume();
    stdout.write(enterSequence);
    this.#redraw();
  }

  #leave(): void {
    if (!this.#isShown) return;
    this.#isShown = false;
    this.#options.stdout.write(leaveSequence);
    this.#options.stdin.setRawMode(false);
  }

  /** Schedules a redraw, if none is scheduled. */
  #plan(): void {
    if (!this.#isShown) return;
    this.#drawing ??= setTimeout(() => this.#draw(), Math.max(this.#drawnAtMs + drawEveryMs - Date.now(), 0));
  }

  #redraw(): void {
    if (!this.#isShown) return;
    this.#drawn = [];
    this.#options.stdout.write('\u001b[2J');
    this.#draw();
  }

  /** Writes all changed rows at once. */
  #draw(): void {
    clearTimeout(this.#drawing);
    this.#drawing = undefined;
    this.#drawnAtMs = Date.now();
    if (!this.#isShown) return;
    const { stdout } = this.#options;
    const columns = this.#columns;
    const view = { columns, rows: stdout.rows || 24, scroll: this.#scroll, nowMs: Date.now() };
    const { rows, scroll, logRows } = frameOf(this.#board, view);
    this.#scroll = scroll;
    this.#pageRows = Math.max(logRows, 1);
    const texts = rows.map((row) => this.#styled(row));
    const changes = texts.flatMap((text, at) => {
      if (text === this.#drawn[at]) return [];
      // With a full row, the cursor is at the last column, and erasing would delete the character there.
      const erase = charactersOf(rows[at]?.text ?? '').length < columns ? '\u001b[K' : '';
      return `\u001b[${at + 1};1H${text}${erase}`;
    });
    this.#drawn = texts;
    if (changes.length > 0) stdout.write(`${beginUpdate}${changes.join('')}${endUpdate}`);
  }

  get #columns(): number {
    return this.#options.stdout.columns || 80;
  }

  #styled({ style, text }: Row): string {
    const format = formats[style];
    return format === undefined || !this.#options.colors ? text : styleText(format, text, { validateStream: false });
  }

  #press({ name = '', ctrl = false }: Key): void {
    if (ctrl && name === 'c') this.#options.onInterrupt();
    if (ctrl && name === 'z') this.#suspend();
    if (ctrl && name === 'l') this.#redraw();
    const steps = scrollSteps[name]?.(this.#pageRows);
    if (ctrl || steps === undefined) return;
    this.#scroll = Math.max(this.#scroll + steps, 0);
    this.#plan();
  }

  /** Stops the process, as Ctrl-Z does without raw mode: the shell has the terminal until it resumes the process. */
  #suspend(): void {
    this.#leave();
    process.kill(0, 'SIGTSTP');
    setTimeout(() => {
      if (!this.#isShown && !this.#restored.signal.aborted) this.#enter();
    }, unstoppedMs);
  }
}

const formats: Readonly<Partial<Record<RowStyle, 'bold' | 'dim' | 'red' | 'cyan'>>> = {
  title: 'bold',
  faint: 'dim',
  build: 'dim',
  event: 'cyan',
  problem: 'red',
};

/** How far keys scroll up. */
const scrollSteps: Readonly<Record<string, (pageRows: number) => number>> = {
  up: () => 1,
  down: () => -1,
  pageup: (pageRows) => pageRows,
  pagedown: (pageRows) => -pageRows,
  home: () => Number.MAX_SAFE_INTEGER,
  end: () => -Number.MAX_SAFE_INTEGER,
};
