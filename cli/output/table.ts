/** Text in columns. */
import { safeText } from './safe-text.ts';

const gap = '  ';

/** Rows below a heading, each column as wide as its widest cell. Cells are made safe for a terminal. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heading, ...rows.map((row) => row.map(safeText))];
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => width(line[column] ?? ''))));
  return lines.map((line) => joined(line, widths)).join('\n');
}

/** Names and values, one pair a line. A value of `undefined` or `null` is omitted. */
export function fields(pairs: Readonly<Record<string, string | number | boolean | null | undefined>>): string {
  const given = Object.entries(pairs).flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [[`${name}:`, safeText(String(value))] as const],
  );
  const widths = [Math.max(0, ...given.map(([name]) => width(name)))];
  return given.map((pair) => joined(pair, widths)).join('\n');
}

function joined(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, i) =>
    i === cells.length - 1 ? cell : cell + ' '.repeat((widths[i] ?? 0) - width(cell)),
  );
  return padded.join(gap).trimEnd();
}

function width(text: string): number {
  return Array.from(text).length;
}
