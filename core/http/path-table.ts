/** Finds what answers a method and path. Express takes longer for this than the rest of a small request takes. */

interface Row<Value> {
  /** A text, or the name of a parameter. */
  readonly segments: readonly Segment[];
  readonly value: Value;
}

type Segment = { readonly text: string } | { readonly parameter: string };

/** A row, and the decoded parameters of the path. */
export interface FoundPath<Value> {
  readonly value: Value;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Finds values by method and path. Of several rows that match, the first one added is used. */
export class PathTable<Value> {
  /** For each method, by the number of segments. */
  readonly #rows = new Map<string, Row<Value>[][]>();

  /** @param pattern - a path whose parameters are written `{name}`; each is one segment that is not empty */
  add(method: string, pattern: string, value: Value): void {
    const segments = pattern.split('/').map(segmentOf);
    const ofMethod = this.#rows.get(method) ?? [];
    this.#rows.set(method, ofMethod);
    (ofMethod[segments.length] ??= []).push({ segments, value });
  }

  /**
   * Finds the row of a request. A path may end with a slash, and HEAD is treated as GET. Throws a `URIError` if a parameter is not
   * correctly encoded.
   */
  find(method: string, path: string): FoundPath<Value> | undefined {
    const segments = segmentsOf(path);
    const row = this.#row(method === 'HEAD' ? 'GET' : method, segments);
    return row && { value: row.value, parameters: parametersOf(row.segments, segments) };
  }

  /** The methods of a path, for the header `Allow`; none if there is no such path. */
  methods(path: string): string[] {
    const segments = segmentsOf(path);
    const methods = [...this.#rows.keys()].filter((method) => this.#row(method, segments));
    return methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method)).toSorted();
  }

  #row(method: string, segments: readonly string[]): Row<Value> | undefined {
    return this.#rows.get(method)?.[segments.length]?.find((row) => isMatch(row.segments, segments));
  }
}

function segmentsOf(path: string): string[] {
  const segments = path.split('/');
  if (segments.at(-1) === '' && segments.at(-2) !== '') segments.pop();
  return segments;
}

function segmentOf(text: string): Segment {
  const parameter = /^\{(\w+)\}$/.exec(text)?.[1];
  return parameter === undefined ? { text } : { parameter };
}

function isMatch(pattern: readonly Segment[], segments: readonly string[]): boolean {
  return pattern.every((each, i) => ('text' in each ? each.text === segments[i] : segments[i] !== ''));
}

function parametersOf(pattern: readonly Segment[], segments: readonly string[]): Record<string, string> {
  const parameters: Record<string, string> = {};
  for (const [i, each] of pattern.entries()) {
    const segment = segments[i] ?? '';
    if ('parameter' in each) parameters[each.parameter] = segment.includes('%') ? decodeURIComponent(segment) : segment;
  }
  return parameters;
}
