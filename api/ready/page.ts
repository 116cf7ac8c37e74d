/** The page that a browser shows until a backend is ready. It loads nothing from elsewhere, and works without scripts too. */
import type { ServerResponse } from 'node:http';
import { escapeHtml, htmlPage, inlineSource, pageHeaders } from '../../core/http/page.ts';
import type { Details } from './details.ts';
import type { Progress } from './progress.ts';

/** Without scripts, the page reloads itself this often. */
const refreshSeconds = 2;

const script = `
const [title, detail, bar] = ['title', 'detail', 'bar'].map((id) => document.getElementById(id));
const events = new EventSource(bar.dataset.events);
// The browser reconnects by itself, except after an answer that is not a stream.
events.onerror = () => { if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), ${refreshSeconds * 1000}); };
events.onmessage = ({ data }) => {
  const progress = JSON.parse(data);
  if (progress.status === 'ready') return location.replace(bar.dataset.url + location.hash);
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
main:has(pre) { max-width: 60rem; text-align: start; }
h2 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
.members { margin-top: 1.5rem; }
a { color: inherit; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 1.5rem 0 0; text-align: start; }
dt { opacity: .75; }
dd { margin: 0; }
.log { display: flex; flex-direction: column-reverse; max-height: 50vh; overflow: auto; border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: .3rem; }
pre { margin: 0; padding: .8rem; white-space: pre-wrap; unicode-bidi: plaintext; font: .85rem/1.4 ui-monospace, monospace; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .ring { animation-duration: 6s; } }
`;

/** Only the page's own script may run. */
const policy = [
  "default-src 'none'",
  `script-src ${inlineSource(script)}`,
  `style-src ${inlineSource(style)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
];

/** No referrer: the URL holds the token. */
const headers = pageHeaders(policy, 'no-referrer');

/** Applications may show the page in a frame, unless it contains details that only members of the account may read. */
const memberHeaders = {
  ...pageHeaders([...policy, "frame-ancestors 'none'"], 'no-referrer'),
  'cross-origin-resource-policy': 'same-origin',
};

/** The events that a waiting page follows, and the URL that it opens when the backend is ready. */
interface Following {
  readonly eventsUrl: string;
  readonly url: string;
}

export interface ReadyPage {
  readonly progress: Progress;
  /** Only of a page that waits. */
  readonly following?: Following;
  /** Only of the page of an ended backend. With `log-in`, the page offers a log-in in their place. */
  readonly details?: Details | 'log-in';
  /** The path of this page. */
  readonly path?: string;
}

/** Sends the page. */
export function sendPage(response: ServerResponse, status: number, page: ReadyPage): void {
  response.writeHead(status, typeof page.details === 'object' ? memberHeaders : headers);
  response.end(pageOf(page));
}

function pageOf({ progress, following, details, path }: ReadyPage): string {
  const { title, detail, busy, share } = progress;
  const ring = busy ? '<div class="ring" aria-hidden="true"></div>\n' : '';
  const text = `${ring}<h1 id="title">${escapeHtml(title)}</h1>\n<p id="detail" role="status">${escapeHtml(detail)}</p>`;
  if (!following) return htmlPage({ title, style, main: `${text}\n${detailsHtml(details, path)}` });
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

/** The HTML after the reason on the page of an ended backend. */
function detailsHtml(details: ReadyPage['details'], path = ''): string {
  if (details === undefined) return '';
  if (details === 'log-in') {
    const target = escapeHtml(`/login?${new URLSearchParams({ next: path }).toString()}`);
    return `<p class="members">If this is your application, <a href="${target}">log in</a> to read its log.</p>`;
  }
  const fields = details.fields.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd>`);
  return `<dl>\n${fields.join('\n')}\n</dl>\n<h2 id="log">Last lines of the log</h2>\n${logOf(details.log)}`;
}

function logOf(lines: Details['log']): string {
  if (lines === undefined) return '<p>The node that has the log does not answer. Reload this page in a moment.</p>';
  if (lines.length === 0) return '<p>The log is empty.</p>';
  // The element that scrolls takes the focus, so that keys scroll it. It opens scrolled to the end.
  return `<div class="log" role="region" aria-labelledby="log" tabindex="0"><pre>${escapeHtml(lines.join('\n'))}</pre></div>`;
}
