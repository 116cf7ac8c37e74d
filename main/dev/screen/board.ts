/** The state that the screen of the development server shows, computed from the events so far. */
import type { BackendStatus } from '../../../contract/statuses.ts';
import { linesFor } from '../report.ts';
import type { DevEvent } from '../report.ts';

export interface BoardBackend {
  readonly key: string | undefined;
  readonly status: BackendStatus;
  readonly connections: number;
  readonly sinceMs: number;
}

export type LogStyle = 'build' | 'event' | 'problem' | 'log';

export interface LogEntry {
  readonly style: LogStyle;
  /** Without control characters. */
  readonly text: string;
}

/** Enough to scroll through a build and the errors after it. */
const keptEntries = 5_000;

/** Entries are removed in batches, because each removal moves all remaining entries. */
const removedAtOnce = 1_000;

export class Board {
  url = '';
  /** The state of the image. */
  image = { text: 'starting', isProblem: false };
  readonly backends = new Map<string, BoardBackend>();
  readonly log: LogEntry[] = [];

  apply(event: DevEvent, nowMs: number): void {
    const style = styleOf(event);
    for (const text of linesFor(event)) this.log.push({ style, text });
    if (this.log.length > keptEntries) this.log.splice(0, removedAtOnce);
    this.#applyImage(event);
    if (event.event === 'listening') this.url = event.url;
    if (event.event === 'backend') this.#applyStatus(event, nowMs);
    if (event.event === 'connections') this.#update(event.backend, { connections: event.open });
  }

  #applyImage(event: DevEvent): void {
    const text = imageText(event);
    if (text !== undefined) this.image = { text, isProblem: event.event === 'build-failed' };
  }

  #applyStatus({ backend, status, key }: DevEvent & { event: 'backend' }, nowMs: number): void {
    if (status === 'terminated') this.backends.delete(backend);
    else if (this.backends.has(backend)) this.#update(backend, { status });
    else this.backends.set(backend, { key: key ?? undefined, status, connections: 0, sinceMs: nowMs });
  }

  #update(backend: string, change: Partial<BoardBackend>): void {
    const found = this.backends.get(backend);
    if (found) this.backends.set(backend, { ...found, ...change });
  }
}

function imageText(event: DevEvent): string | undefined {
  if (event.event === 'serving') return `image ${event.digest.slice(7, 19)}, after ${event.seconds} s`;
  if (event.event === 'unchanged') return `image unchanged, after ${event.seconds} s`;
  return plainImageTexts[event.event];
}

const plainImageTexts: Readonly<Partial<Record<DevEvent['event'], string>>> = {
  'build-started': 'building',
  'build-failed': 'build failed',
  stopping: 'stopping',
};

function styleOf({ event }: DevEvent): LogStyle {
  if (event === 'build-line') return 'build';
  if (event === 'log') return 'log';
  return event === 'build-failed' || event === 'warning' ? 'problem' : 'event';
}
