/** The page that a browser sees until its backend is ready. It needs nothing from elsewhere, and works without scripts too. */
import { createHash } from 'node:crypto';
import type { Express, Response } from 'express';
import type { TerminationReason } from '../contract/statuses.ts';
import { escapeHtml, htmlPage } from '../core/http/page.ts';
import { hashToken } from '../model/access-token.ts';
import { backends, isEnding } from '../model/backend.ts';
import type { Backend, StatusEntry } from '../model/backend.ts';
import { connectionTokenPattern, routes, tokenSource } from '../model/route.ts';
import { connectionUrl } from './present.ts';
import type { Api } from './dependencies.ts';

/** Without scripts, the page looks again by itself this often. */
const refreshSeconds = 2;

/** Mounts `/ready/{backend}/{token}/`. */
export function mountReadyPage(app: Express, api: Api): void {
  app.get('/ready/:backend/:token', async (request, response) => {
    const { backend: id, token } = request.params;
    const backend = await backendOf(api, id, token);
    return answerReadyPage(api, response, backend, token);
  });
}

/** The page of a backend that was spawned through v1 or the earliest form, where its ID is enough to find it. */
export async function answerOlderReadyPage(api: Api, response: Response, id: string): Promise<void> {
  const found = await api.store.get(backends, id);
  const backend = found?.generation === undefined ? undefined : found;
  answerReadyPage(api, response, backend, api.tokenFor(tokenSource({ backend: id })));
}

function answerReadyPage(api: Api, response: Response, backend: Backend | undefined, token: string): void {
  if (!backend) {
    sendPage(response, 404, page(gone));
    return;
  }
  const url = connectionUrl(api.urls, token);
  if (backend.status === 'ready') response.setHeader('cache-control', 'no-store').redirect(303, url);
  else if (!backend.live) sendPage(response, 410, page(ended(backend)));
  else {
    const streamUrl = `${api.urls.api}/v2/backend/${backend.id}/status/stream`;
    sendPage(response, 200, page(underWay(backend), { streamUrl, url }));
  }
}

async function backendOf(api: Api, id: string, token: string): Promise<Backend | undefined> {
  if (!connectionTokenPattern.test(token)) return undefined;
  const route = await api.store.get(routes, hashToken(token));
  return route?.backend === id ? await api.store.get(backends, id) : undefined;
}

interface Words {
  readonly title: string;
  readonly detail: string;
  readonly busy: boolean;
}

const gone: Words = {
  title: 'No such session',
  detail: 'This link does not lead anywhere. Ask for a new one.',
  busy: false,
};

/** What each step means to the person who waits. */
const steps: Readonly<Record<string, string>> = {
  scheduled: 'Waiting for a place to run…',
  loading: 'Fetching the image…',
  starting: 'Starting the container…',
  waiting: 'Waiting for the application to answer…',
  terminating: 'The session is being stopped…',
  'hard-terminating': 'The session is being stopped…',
};

function underWay(backend: Backend): Words {
  if (isEnding(backend)) return { title: 'The session is being stopped', detail: 'One moment…', busy: true };
  return { title: 'Starting your session', detail: steps[backend.status] ?? 'One moment…', busy: true };
}

function ended(backend: Backend): Words {
  const last = backend.history.at(-1);
  if (backend.readyAt)
    return { title: 'This session has ended', detail: 'Ask for a new link to start another.', busy: false };
  return { title: 'The session could not start', detail: last?.failure ?? whyNotStarted(last), busy: false };
}

const whyStopped: Readonly<Record<TerminationReason, string>> = {
  startuptimeout: 'The application did not become ready in time.',
  lost: 'The machine on which it was started was lost.',
  keyexpired: 'Its key was given to another session.',
  external: 'It was stopped before it was ready.',
  swept: 'It was stopped before it was ready.',
};

/** The exit code of a container means something only where the platform did not stop it. */
function whyNotStarted({ terminationReason: reason, exitCode }: Partial<StatusEntry> = {}): string {
  if (reason) return whyStopped[reason];
  if (typeof exitCode !== 'number') return 'The container ended before it was ready.';
  return `The container exited with code ${exitCode} before it was ready.`;
}

const script = `
const { streamUrl, url, steps } = JSON.parse(document.getElementById('facts').textContent);
const detail = document.getElementById('detail');
const stream = new EventSource(streamUrl);
stream.onmessage = ({ data }) => {
  const { status } = JSON.parse(data);
  if (steps[status]) detail.textContent = steps[status];
  if (status === 'ready') location.replace(url);
  else if (status === 'terminated') { stream.close(); location.reload(); }
};
`;

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; text-align: center; }
main { padding: 2rem; max-width: 32rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 1.2rem 0 .3rem; }
p { margin: 0; opacity: .75; }
.ring { width: 2.5rem; height: 2.5rem; margin: 0 auto; border-radius: 50%; border: 3px solid color-mix(in srgb, currentColor 20%, transparent); border-top-color: currentColor; animation: turn 1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .ring { animation-duration: 6s; } }
`;

function page(words: Words, live?: { streamUrl: string; url: string }): string {
  const facts = live && JSON.stringify({ ...live, steps }).replaceAll('<', String.raw`\u003c`);
  return htmlPage({
    title: words.title,
    style,
    main: `${words.busy ? '<div class="ring" aria-hidden="true"></div>\n' : ''}<h1>${escapeHtml(words.title)}</h1>
<p id="detail" role="status">${escapeHtml(words.detail)}</p>`,
    ...(live && {
      head: `<noscript><meta http-equiv="refresh" content="${refreshSeconds}"></noscript>\n`,
      end: `<script type="application/json" id="facts">${facts}</script>\n<script>${script}</script>\n`,
    }),
  });
}

/** Only what the page itself carries may run; the URL, which holds the token, is told to nobody. */
const contentSecurityPolicy = [
  "default-src 'none'",
  `script-src '${hashOf(script)}'`,
  `style-src '${hashOf(style)}'`,
  'connect-src *',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

function sendPage(response: Response, status: number, html: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': contentSecurityPolicy,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(html);
}
