/** The table of tested applications in docs/applications.md. */
import { readFile } from 'node:fs/promises';
import type { Application } from './application.ts';

const start = '<!-- The tests write this table: test/applications -->\n';
const end = '<!-- End of the table -->\n';

export interface Tried {
  readonly application: Application;
  /** The forms of URL that were used. */
  readonly forms: readonly ('host' | 'path')[];
  readonly works: boolean;
}

/** The page with its table replaced. */
export async function withTable(page: string, tried: readonly Tried[]): Promise<string> {
  const text = await readFile(page, 'utf8');
  const [before, rest] = text.split(start);
  const [, after] = (rest ?? '').split(end);
  if (before === undefined || after === undefined) throw new Error('The page has no place for the table');
  return `${before}${start}\n${tableOf(tried)}\n${end}${after}`;
}

function tableOf(tried: readonly Tried[]): string {
  const rows = tried.map(({ application: { name, title, settings, used }, forms, works }) => [
    `[${title}](../test/applications/${name}/Dockerfile)`,
    forms.join(', '),
    settings ? `\`${JSON.stringify(settings)}\`` : 'none',
    used,
    works ? 'yes' : 'no',
  ]);
  const head = ['application', 'form of URL', 'settings needed', 'used in Chromium', 'works'];
  const widths = head.map((_cell, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |\n`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('');
}
