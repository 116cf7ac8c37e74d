/**
 * JSON in which all readers see the same. Of a name that stands twice some readers take the first value and some the last;
 * deep nesting ends some of them, and a flood of members costs all of them time.
 */

/** Go's reader, which most clients have, refuses 10,000; manifests nest four or five deep. */
const maxDepth = 100;

/** Ten thousand layers have some 40,000. Building objects of a million members would hold this process up for seconds. */
const maxMembers = 65_536;

/** The value of a JSON text. Throws `SyntaxError`, for what is no JSON and for what is not strict. */
export function parseStrictJson(text: string): unknown {
  // Before it is parsed: what it guards against would happen there.
  checkStrict(text);
  return JSON.parse(text);
}

/** Walks over a text that may be no JSON at all: then parsing finds that out. */
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
        if (open.push(nameNext ? new Set() : undefined) > maxDepth) throw new SyntaxError('Nested too deep');
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

/** Where the string that begins at `start` ends. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
  }
  throw new SyntaxError('A string does not end');
}

/** Two spellings of a name are one name: `"\u0061"` is `"a"`. */
function addName(names: Set<string> | undefined, literal: string): void {
  const name = literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
  if (names?.has(name)) throw new SyntaxError(`The name ${JSON.stringify(name.slice(0, 64))} stands twice`);
  names?.add(name);
}
