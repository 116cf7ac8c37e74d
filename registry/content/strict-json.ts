/**
 * Parses only JSON that all parsers read alike. Of a duplicate name, some parsers use the first value and some the last; deep
 * nesting crashes some, and a flood of members costs all of them time.
 */

/** Go's parser, which most clients use, allows 10,000; manifests nest four or five levels deep. */
const maxDepth = 100;

/** A manifest with ten thousand layers has some 40,000. Building objects with a million members would block this process for seconds. */
const maxMembers = 65_536;

/** Parses a JSON text. Throws `SyntaxError` if it is not JSON or not strict. */
export function parseStrictJson(text: string): unknown {
  // Before parsing, which has the problems that this check prevents.
  checkStrict(text);
  return JSON.parse(text);
}

/** Scans a text that may not even be JSON: parsing detects that. */
function checkStrict(text: string): void {
  /** The names of each open object, and `undefined` for each open array. */
  const open: (Set<string> | undefined)[] = [];
  let members = 0;
  let nameNext = false;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = endOfString(text, at);
        if (nameNext) addName(open.at(-1), text.slice(at, end + 1));
        nameNext = false;
        at = end;
        break;
      }
      case openBrace:
      case openBracket:
        nameNext = text.charCodeAt(at) === openBrace;
        if (open.push(nameNext ? new Set() : undefined) > maxDepth) throw new SyntaxError('Nested too deeply');
        members += 1;
        break;
      case closeBrace:
      case closeBracket:
        open.pop();
        nameNext = false;
        break;
      case comma:
        nameNext = open.at(-1) !== undefined;
        members += 1;
        break;
      default:
    }
    if (members > maxMembers) throw new SyntaxError('Too many members');
  }
}

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** The position of the quote that ends the string beginning at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
  }
  throw new SyntaxError('Unterminated string');
}

/** Compares names after unescaping: `"\u0061"` is `"a"`. */
function addName(names: Set<string> | undefined, literal: string): void {
  const name = literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
  if (names?.has(name)) throw new SyntaxError(`The name ${JSON.stringify(name.slice(0, 64))} is duplicated`);
  names?.add(name);
}
