/** HTML pages that load nothing, and that search engines do not index. */
import { createHash } from 'node:crypto';

export interface Page {
  readonly title: string;
  readonly style: string;
  /** HTML, like the fields below: pass text through `escapeHtml` first. */
  readonly main: string;
  readonly head?: string;
  /** HTML after the content. */
  readonly end?: string;
}

export function htmlPage({ title, style, main, head = '', end = '' }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
${head}<style>${style}</style>
</head>
<body>
<main>
${main}
</main>
${end}</body>
</html>
`;
}

/** The headers of a page that must not be cached, with its content security policy. */
export function pageHeaders(policy: readonly string[], referrerPolicy: 'no-referrer' | 'same-origin') {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'referrer-policy': referrerPolicy,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
}

/** The source expression of a policy for a script or a style that a page contains. */
export function inlineSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Escapes text for HTML, between tags and in quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
