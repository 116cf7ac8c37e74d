/** The summary of a deployment on the page of the workflow run. */
import type { Commit } from './commit.ts';

export interface Deployed {
  readonly service: string;
  readonly environment: string;
  readonly digest: string;
  readonly tags: readonly string[];
  /** Of the compressed layers. Undefined if the registry does not say. */
  readonly sizeBytes: number | undefined;
  readonly backend: string | undefined;
  readonly durationMs: number;
  readonly commit: Commit;
}

/** A table in HTML: without blank lines in it, GitHub reads no Markdown in a commit message. */
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

/** Also what is Markdown, should a renderer look for it here. */
function escaped(text: string): string {
  return text.replaceAll(/[^\w .,/:()+-]/gu, (character) => `&#${character.codePointAt(0)};`);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
