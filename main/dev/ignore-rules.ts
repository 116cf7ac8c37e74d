/**
 * The rules of `.dockerignore`, as Docker applies them: patterns are relative to the context, the last match decides, `!` makes an
 * exception, and everything below an ignored folder is ignored. https://docs.docker.com/build/concepts/context/#dockerignore-files
 */
import { posix } from 'node:path';

interface Rule {
  readonly pattern: RegExp;
  /** The pattern up to its first special character. */
  readonly literal: string;
  /** Whether the rule begins with `!`. */
  readonly isException: boolean;
}

export class IgnoreRules {
  readonly #rules: readonly Rule[];

  /** Parses the text of a `.dockerignore`. */
  constructor(text: string) {
    this.#rules = text
      .replace(/^\uFEFF/, '')
      .split(/\r?\n/)
      .flatMap((line) => ruleOf(line) ?? []);
  }

  /** Whether a path is ignored. It is relative to the context, with slashes. */
  ignores(path: string): boolean {
    const prefixes = path.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'));
    let ignored = false;
    for (const { pattern, isException } of this.#rules) {
      if (isException === ignored && prefixes.some((prefix) => pattern.test(prefix))) ignored = !isException;
    }
    return ignored;
  }

  /** Whether a folder and everything below it is ignored: no exception can match a path below it. */
  ignoresAllBelow(folder: string): boolean {
    if (!this.ignores(folder)) return false;
    const start = `${folder}/`;
    return !this.#rules.some(
      ({ isException, literal }) => isException && (literal.startsWith(start) || start.startsWith(literal)),
    );
  }
}

function ruleOf(line: string): Rule | undefined {
  const trimmed = line.startsWith('#') ? '' : line.trim();
  const isException = trimmed.startsWith('!');
  const text = trimmed.slice(isException ? 1 : 0).trim();
  const path = text === '' ? '' : posix.normalize(text).replace(/^\/+|\/+$/g, '');
  if (path === '' || path === '.') return undefined;
  return {
    pattern: new RegExp(`^${expressionOf(path)}$`, 'su'),
    literal: /^[^*?[\\]*/.exec(path)?.[0] ?? '',
    isException,
  };
}

/** Matches the parts of a pattern, which `expressionOf` translates one by one. */
const parts = /\*\*\/|\*\*|\*|\?|\[(?:\\.|[^\]\\])+\]|\\.|[^]/gu;

function expressionOf(pattern: string): string {
  return pattern.replaceAll(parts, (part) => {
    if (part === '**/') return '(?:.*/)?';
    if (part === '**') return '.*';
    if (part === '*') return '[^/]*';
    if (part === '?') return '[^/]';
    if (part.length > 1 && part.startsWith('[')) return part;
    return escaped(part.length > 1 && part.startsWith('\\') ? part.slice(1) : part);
  });
}

function escaped(character: string): string {
  return character.replace(/[$()*+.?[\\\]^{|}/]/, String.raw`\$&`);
}
