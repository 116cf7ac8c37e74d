/** The summary of a deployment on the page of the workflow run. */
import type { Commit } from './commit.ts';

export interface Deployed {
  readonly service: string;
  readonly environment: string;
  readonly digest: string;
  readonly tags: readonly string[];
  /** The size of the compressed layers. Undefined if it is unknown. */
  readonly sizeBytes: number | undefined;
  readonly backend: string | undefined;
  readonly durationMs: number;
  readonly commit: Commit;
}

/** An HTML table without blank lines, so that GitHub does not interpret Markdown in a commit message. */
export function summaryOf(deployed: Deployed): string {
  const { commit, backend, sizeBytes } = deployed;
  const rows: [string, string][] = [
    ['Service', code(`${deployed.service}/${deployed.environment}`)],
    ['Commit', `${code(commit.hash.slice(0, 12))} ${escaped(firstLine(commit.message))}`],
    ['Digest', code(deployed.digest)],
    ['Tags', deployed.tags.map(code).join(' ')],
    ...(sizeBytes === undefined ? [] : [['Size', megabytes(sizeBytes)] as [string, string]]),
    ...(backend === undefined ? [] : [['Ready backend', code(backend)] as [string, string]]),
    ['Time', `${(deployed.durationMs / 1000).toFixed(1)} s`],
  ];
  const html = rows.map(([name, value]) => `<tr><th>${name}</th><td>${value}</td></tr>`).join('\n');
  return `## Deployed to Berth\n\n<table>\n${html}\n</table>\n\n`;
}

function code(text: string): string {
  return `<code>${escaped(text)}</code>`;
}

function firstLine(text: string): string {
  return text.trim().split(/[\r\n]/)[0] ?? '';
}

/** Also escapes Markdown, in case a renderer interprets it here. */
function escaped(text: string): string {
  return text.replaceAll(/[^\w .,/:()+-]/gu, (character) => `&#${character.codePointAt(0)};`);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
