/** Parsers of options. */
import { InvalidArgumentError } from '@commander-js/extra-typings';
import { parseDuration } from './output/time-text.ts';
import type { Session } from './session.ts';

/** A non-negative integer. */
export function nonNegative(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It is not a whole number.');
  return Number(text);
}

/** `NAME=VALUE`, or `NAME` for the value in this environment, which keeps a secret out of the command line. */
export function variable({ io }: Session) {
  return (text: string, before: Readonly<Record<string, string>> | undefined): Record<string, string> => {
    const at = text.indexOf('=');
    const name = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? io.env[name] : text.slice(at + 1);
    if (name === '') throw new InvalidArgumentError('Use NAME=VALUE.');
    if (value === undefined) throw new InvalidArgumentError(`The environment has no variable ${name}.`);
    return { ...before, [name]: value };
  };
}

/** An option that may be repeated. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** One of the scopes `allowed`, or several with commas between them. The option may be repeated. */
export function scopes<Scope extends string>(allowed: readonly Scope[]) {
  return (text: string, before: readonly Scope[] = []): Scope[] => {
    const found = text.split(',').map((name) => {
      const scope = allowed.find((each) => each === name);
      if (scope === undefined) throw new InvalidArgumentError(`Use ${allowed.join(', ')}.`);
      return scope;
    });
    return [...before, ...found];
  };
}

/** An integer of at least 1. */
export function positive(text: string): number {
  const value = nonNegative(text);
  if (value === 0) throw new InvalidArgumentError('It must be at least 1.');
  return value;
}

/** A duration in seconds. */
export function duration(text: string): number {
  const seconds = parseDuration(text);
  if (!seconds) throw new InvalidArgumentError('It is not a duration such as 90s, 15m, 12h or 30d.');
  return seconds;
}
