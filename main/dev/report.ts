/** The events of the development server, and how they are written: as plain lines or as lines of JSON. */
import { stripVTControlCharacters } from 'node:util';
import type { BackendStatus } from '../../contract/statuses.ts';

export type DevEvent =
  | { readonly event: 'listening'; readonly url: string }
  | { readonly event: 'changed'; readonly path: string; readonly more: number }
  | { readonly event: 'build-started' }
  | { readonly event: 'build-line'; readonly line: string }
  | { readonly event: 'build-failed'; readonly problem: string; readonly lines: readonly string[] }
  | { readonly event: 'serving'; readonly digest: string; readonly seconds: number }
  | { readonly event: 'unchanged'; readonly seconds: number }
  | { readonly event: 'replacing'; readonly backends: readonly string[] }
  | { readonly event: 'connect-waits' }
  | {
      readonly event: 'backend';
      readonly backend: string;
      readonly key: string | null;
      readonly status: BackendStatus;
      readonly details: string;
    }
  | { readonly event: 'connections'; readonly backend: string; readonly open: number }
  | { readonly event: 'log'; readonly backend: string; readonly line: string }
  | { readonly event: 'warning'; readonly problem: string }
  | { readonly event: 'stopping'; readonly backends: number };

export type Report = (event: DevEvent) => void;

/** How many last lines of a failed build are repeated below its message: the error is at the end. */
const repeatedLines = 20;

/** Writes each event as lines for people, or as one line of JSON. */
export function newReport(write: (line: string) => void, json: boolean): Report {
  if (json) return (event) => write(JSON.stringify(event));
  return (event) => {
    for (const line of linesFor(event)) write(line);
  };
}

/** An event as lines for people, without control characters. */
export function linesFor(event: DevEvent): string[] {
  return rawLinesFor(event).map(harmless);
}

// oxlint-disable-next-line max-lines-per-function -- one line for each event
function rawLinesFor(event: DevEvent): readonly string[] {
  switch (event.event) {
    case 'listening':
      return [`Listening on ${event.url}`];
    case 'changed':
      return [`Changed: ${event.path}${event.more > 0 ? ` and ${event.more} more` : ''}`];
    case 'build-started':
      return ['Building'];
    case 'build-line':
      return [`build | ${event.line}`];
    case 'build-failed':
      return [`Build failed: ${event.problem}`, ...event.lines.slice(-repeatedLines).map((line) => `  ${line}`)];
    case 'serving':
      return [`Serving ${event.digest.slice(0, 19)} after ${event.seconds} s`];
    case 'unchanged':
      return [`The image is the same as before, after ${event.seconds} s`];
    case 'replacing':
      return [`Stopping backends of the previous image: ${event.backends.join(', ')}`];
    case 'connect-waits':
      return ['A connect request waits for the build'];
    case 'backend':
      return [`${event.backend} ${event.status}${event.details && ` (${event.details})`}`];
    case 'connections':
      // Not shown, because every request opens one.
      return [];
    case 'log':
      return [`${event.backend} | ${event.line}`];
    case 'warning':
      return [`Warning: ${event.problem}`];
    case 'stopping':
      if (event.backends === 0) return ['Stopping'];
      return [
        `Stopping ${event.backends} ${event.backends === 1 ? 'backend' : 'backends'}; Ctrl-C again to leave at once`,
      ];
    default:
      return event satisfies never;
  }
}

/** Text from builds and containers must not control the terminal. */
function harmless(line: string): string {
  return stripVTControlCharacters(line).replaceAll(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (character) =>
    character === '\t' ? character : `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}
