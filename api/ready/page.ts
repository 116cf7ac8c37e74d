/** The page that a browser shows until a backend is ready. It loads nothing from elsewhere, and works without scripts too. */
import { createHash } from 'node:crypto';
import type { Response } from 'express';
import { escapeHtml, htmlPage } from '../../core/http/page.ts';
import type { Progress } from './progress.ts';

/** Without scripts, the page reloads itself this often. */
const refreshSeconds = 2;

const script = `
const [title, detail, bar] = ['title', 'detail', 'bar'].map((id) => document.getElementById(id));
const events = new EventSource(bar.dataset.events);
events.onmessage = ({ data }) => {
  const progress = JSON.parse(data);
  if (progress.status === 'ready') return location.replace(bar.dataset.url);
  if (progress.status === 'terminated') { events.close(); return location.reload(); }
  document.title = title.textContent = progress.title;
  detail.textContent = progress.detail;
  bar.hidden = progress.share === undefined;
  if (!bar.hidden) bar.value = progress.share;
};
`;

const style = `
:root { color-scheme: light dark; background: Canvas; color: CanvasText; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; text-align: center; }
main { padding: 2rem; max-width: 32rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 1.2rem 0 .3rem; }
p { margin: 0; opacity: .75; font-variant-numeric: tabular-nums; }
progress { margin-top: 1rem; width: 16rem; max-width: 100%; accent-color: currentColor; }
progress[hidden] { display: none; }
.ring { width: 2.5rem; height: 2.5rem; margin: 0 auto; border-radius: 50%; border: 3px solid color-mix(in srgb, currentColor 20%, transparent); border-top-color: currentColor; animation: turn 1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .ring { animation-duration: 6s; } }
`;

/** Only what the page itself carries may run. No referrer: the URL holds the token. */
const headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** What a page that waits follows, and to which URL it leads when the backend is ready. */
export interface Following {
  readonly eventsUrl: string;
  readonly url: string;
}

/** Sends the page. */
export function sendPage(response: Response, status: number, progress: Progress, following?: Following): void {
  response.writeHead(status, headers);
  response.end(pageOf(progress, following));
}

function pageOf({ title, detail, busy, share }: Progress, following: Following | undefined): string {
  const ring = busy ? '<div class="ring" aria-hidden="true"></div>\n' : '';
  const text = `${ring}<h1 id="title">${escapeHtml(title)}</h1>\n<p id="detail" role="status">${escapeHtml(detail)}</p>`;
  if (!following) return htmlPage({ title, style, main: text });
  const data = `data-events="${escapeHtml(following.eventsUrl)}" data-url="${escapeHtml(following.url)}"`;
  const value = share === undefined ? 'hidden' : `value="${share}"`;
  return htmlPage({
    title,
    style,
    main: `${text}\n<progress id="bar" aria-label="Image" ${data} ${value}></progress>`,
    head: `<noscript><meta http-equiv="refresh" content="${refreshSeconds}"></noscript>\n`,
    end: `<script>${script}</script>\n`,
  });
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
