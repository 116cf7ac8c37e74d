/** Pages for people: whole in themselves, they load nothing from anywhere, and no search engine keeps them. */

export interface Page {
  readonly title: string;
  readonly style: string;
  /** HTML, as is what follows: what comes from elsewhere goes through `escapeHtml` first. */
  readonly main: string;
  readonly head?: string;
  /** What follows the page's content. */
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

/** Text that may stand in HTML, between tags and in quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
