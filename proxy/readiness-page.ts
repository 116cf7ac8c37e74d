/** Browsers that open a page of a starting backend are redirected to its readiness page. */
import type { IncomingMessage } from 'node:http';
import { readyPathTo } from '../model/ready-url.ts';
import type { ConnectionUrl } from './connection-url.ts';

/** A container starts in a third of a second if its node has the image. A page that appears only for a moment would flicker. */
export const readinessPageAfterMs = 1_000;

/** Destinations that can show a page. */
const pageDestinations: ReadonlySet<string | undefined> = new Set(['document', 'iframe', 'frame', undefined]);

/** Whether a browser will show the answer as a page. Requests of scripts, styles and programs are not repeated by a page. */
export function isNavigation({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  if (method !== 'GET' || headers.upgrade !== undefined || !headers.accept?.includes('text/html')) return false;
  const { 'sec-fetch-mode': mode = 'navigate', 'sec-fetch-dest': destination } = headers;
  return mode === 'navigate' && pageDestinations.has(destination);
}

/** The URL of the readiness page, which opens the requested path of the application when the backend is ready. */
export function readinessUrl(apiUrl: string, backend: string, url: ConnectionUrl): string {
  return `${apiUrl}${readyPathTo(backend, url, url.rest)}`;
}
