import { proxyErrors } from '../contract/proxy-errors.ts';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';
import { escapeHtml, htmlPage } from '../core/http/page.ts';

const style = `
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 20vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
p { opacity: .7 }
`;

/** A page for people about an error of the proxy's own, without a word from the request. */
export function errorPage(code: ProxyErrorCode, id: string): string {
  const { status, message } = proxyErrors[code];
  const main = `<h1>${escapeHtml(message)}</h1>\n<p>${status} ${code}, ${id}</p>`;
  return htmlPage({ title: message, style, main });
}

/** Nothing on the page may load, run, or be framed. */
export const errorPagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
