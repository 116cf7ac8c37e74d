import { proxyErrors } from '../contract/proxy-errors.ts';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';

/** A page for people about an error of the proxy's own: whole in itself, and without a word from the request. */
export function errorPage(code: ProxyErrorCode, id: string): string {
  const { status, message } = proxyErrors[code];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${message}</title>
<style>
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 20vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
p { opacity: .7 }
</style>
</head>
<body>
<main>
<h1>${message}</h1>
<p>${status} ${code}, ${id}</p>
</main>
</body>
</html>
`;
}

/** Nothing on the page may load, run, or be framed. */
export const errorPagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
