/** Escapes text from servers and containers, so that it cannot control the terminal. */

/** Control characters, line and paragraph separators, and marks that change the direction of text. */
const unsafe = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

const shortEscapes: Readonly<Record<string, string>> = { '\n': String.raw`\n`, '\r': String.raw`\r`, '\t': '\t' };

/** Returns the text on one line, with control characters written as escapes. */
export function safeText(text: string): string {
  return text.replaceAll(unsafe, (character) => shortEscapes[character] ?? escaped(character));
}

/** Colours and styles ("Select Graphic Rendition" of ECMA-48), which have no other effect. */
const style = new RegExp(String.raw`(\u001b\[[\d;:]*m)`);

/** Escapes a log line like `safeText`. If colours are enabled, keeps the application's colours until the end of the line. */
export function safeLogLine(line: string, colors: boolean): string {
  const parts = line.split(style);
  if (parts.length === 1) return safeText(line);
  const safe = parts.map((part, i) => (i % 2 === 0 ? safeText(part) : colors ? part : '')).join('');
  return colors ? `${safe}\u001b[0m` : safe;
}

/** Returns JSON on one line, with control characters written as JSON escapes. */
export function safeJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    unsafe,
    (character) => String.raw`\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`,
  );
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code <= 0xff ? String.raw`\x${code.toString(16).padStart(2, '0')}` : String.raw`\u${code.toString(16)}`;
}
