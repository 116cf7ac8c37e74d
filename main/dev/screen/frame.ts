/** The rows of the screen, from top to bottom, as a pure function of its state and its size. */
import type { Board, BoardBackend, LogEntry, LogStyle } from './board.ts';

export interface View {
  readonly columns: number;
  readonly rows: number;
  /** How many rows of the log are below the last visible row. */
  readonly scroll: number;
  readonly nowMs: number;
}

export type RowStyle = LogStyle | 'title' | 'faint' | 'plain';

export interface Row {
  readonly style: RowStyle;
  readonly text: string;
}

export interface Frame {
  readonly rows: readonly Row[];
  /** The scroll of the view, or less if the log is shorter. */
  readonly scroll: number;
  /** How many rows of the screen the log has. */
  readonly logRows: number;
}

/** On fewer rows, only the title and the log are shown. */
const minRowsForBackends = 8;

export function frameOf(board: Board, view: View): Frame {
  const title = titleRow(board, view.columns);
  const table = view.rows < minRowsForBackends ? [] : backendRows(board, view);
  const footerRows = view.rows < minRowsForBackends ? 0 : 1;
  const logRows = Math.max(view.rows - 1 - table.length - footerRows, 0);
  const { rows, scroll } = logPart(board.log, view, logRows);
  const footer = footerRows === 0 ? [] : [footerRow(scroll)];
  const all = [title, ...table, ...rows, ...footer];
  return { rows: all.slice(0, view.rows).map((row) => clipped(row, view.columns)), scroll, logRows };
}

/** How many rows an entry of the log takes. */
export function rowsOfEntry({ text }: LogEntry, columns: number): number {
  return wrapped(text, columns).length;
}

function titleRow({ url, image }: Board, columns: number): Row {
  const left = `berth dev  ${url}`;
  return {
    style: image.isProblem ? 'problem' : 'title',
    text: `${left}  ${image.text.padStart(columns - left.length - 2)}`,
  };
}

const head: readonly string[] = ['BACKEND', 'KEY', 'STATUS', 'CONNECTIONS', 'FOR'];

/** Keys may be long, and must not push the columns after them off the screen. */
const maxKeyLength = 30;

function backendRows({ backends, url }: Board, { rows, nowMs, columns }: View): Row[] {
  const rule: Row = { style: 'faint', text: '─'.repeat(columns) };
  if (backends.size === 0) {
    return [{ style: 'faint', text: `No backends. POST ${url}/v2/service/ACCOUNT/SERVICE/connect spawns one` }, rule];
  }
  const shown = Math.max(Math.floor(rows / 2) - 3, 1);
  // The newest backends are the most interesting ones.
  const entries = [...backends].toReversed().slice(0, shown);
  const cells = entries.map(([id, backend]) => cellsOf(id, backend, nowMs));
  const widths = head.map((_cell, at) => Math.max(...[head, ...cells].map((row) => row[at]?.length ?? 0)));
  const text = (row: readonly string[]) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ');
  const hidden = backends.size - entries.length;
  return [
    { style: 'faint', text: text(head) },
    ...cells.map((row): Row => ({ style: 'plain', text: text(row) })),
    ...(hidden > 0 ? [{ style: 'faint' as const, text: `and ${hidden} more` }] : []),
    rule,
  ];
}

function cellsOf(id: string, { key, status, connections, sinceMs }: BoardBackend, nowMs: number): string[] {
  const characters = charactersOf(key ?? '-');
  const short =
    characters.length > maxKeyLength ? `${characters.slice(0, maxKeyLength).join('')}…` : characters.join('');
  return [id, short, status, String(connections), durationText(nowMs - sinceMs)];
}

function durationText(ms: number): string {
  const seconds = Math.max(Math.floor(ms / 1_000), 0);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The part of the log that is shown, filled up with empty rows. */
function logPart(log: readonly LogEntry[], { columns, scroll }: View, height: number): { rows: Row[]; scroll: number } {
  const found: Row[] = [];
  for (let at = log.length - 1; at >= 0 && found.length < height + scroll; at -= 1) {
    const { style, text } = log[at] ?? { style: 'log' as const, text: '' };
    found.push(
      ...wrapped(text, columns)
        .toReversed()
        .map((part): Row => ({ style, text: part })),
    );
  }
  const possible = Math.max(Math.min(scroll, found.length - height), 0);
  const rows = found.slice(possible, possible + height).toReversed();
  const empty = Array.from({ length: height - rows.length }, (): Row => ({ style: 'plain', text: '' }));
  return { rows: [...rows, ...empty], scroll: possible };
}

function footerRow(scroll: number): Row {
  const keys = 'Ctrl-C: stop   ↑ ↓ PgUp PgDn: scroll   End: newest lines';
  return scroll === 0
    ? { style: 'faint', text: keys }
    : { style: 'title', text: `${scroll} ${scroll === 1 ? 'line' : 'lines'} below   End: newest lines` };
}

/** Splits a line into rows. The terminal cuts a row with wide characters off at its edge. */
function wrapped(text: string, columns: number): string[] {
  const characters = charactersOf(text.replaceAll('\t', '    '));
  if (characters.length <= columns) return [characters.join('')];
  const count = Math.ceil(characters.length / columns);
  return Array.from({ length: count }, (_, i) => characters.slice(i * columns, (i + 1) * columns).join(''));
}

function clipped({ style, text }: Row, columns: number): Row {
  return { style, text: charactersOf(text).slice(0, columns).join('') };
}

/** Splits text into user-perceived characters (grapheme clusters). */
export function charactersOf(text: string): string[] {
  // A fast path, because most lines are plain ASCII.
  if (/^[ -~]*$/.test(text)) return text.split('');
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

const segmenter = new Intl.Segmenter();
