/** Settings from environment variables: declared once, parsed strictly, documented from the same declaration. */
import { z } from 'zod';
import type { ZodType } from 'zod';

/** One variable. Its schema parses the text, or `undefined` if the variable is not set. */
export interface Setting<T> {
  readonly variable: string;
  readonly schema: ZodType<T, string | undefined>;
  /** A description of the default, where its value alone does not say enough. */
  readonly defaultText?: string;
  readonly help: string;
}

type Settings = Readonly<Record<string, Setting<unknown>>>;

/** The values of declared settings. */
export type SettingValues<S extends Settings> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never;
};

/** The environment has invalid variables. The message lists every problem on its own line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** What is wrong with the value of a variable. */
export interface SettingProblem {
  readonly variable: string;
  readonly message: string;
}

/**
 * Reads settings from the environment. Undeclared variables that begin with `prefix` are problems too: most are misspelt. An empty
 * variable counts as not set. `check` finds problems of settings with each other; settings that are not valid are missing in its
 * values. Throws `ConfigError` with all problems at once.
 */
export function readSettings<S extends Settings>(
  settings: S,
  environment: Readonly<Record<string, string | undefined>>,
  {
    prefix,
    check,
  }: { readonly prefix: string; readonly check: (values: Partial<SettingValues<S>>) => SettingProblem[] },
): SettingValues<S> {
  const values: Record<string, unknown> = {};
  const problems: SettingProblem[] = [];
  for (const [name, { variable, schema }] of Object.entries(settings)) {
    const parsed = schema.safeParse(environment[variable] || undefined);
    if (parsed.success) values[name] = parsed.data;
    else problems.push(...parsed.error.issues.map(({ message }) => ({ variable, message })));
  }
  const invalid = new Set(problems.map(({ variable }) => variable));
  problems.push(...check(values as Partial<SettingValues<S>>).filter(({ variable }) => !invalid.has(variable)));
  const known = new Set(Object.values(settings).map(({ variable }) => variable));
  for (const variable of Object.keys(environment)) {
    if (variable.startsWith(prefix) && !known.has(variable)) {
      problems.push({ variable, message: 'There is no such setting' });
    }
  }
  if (problems.length === 0) return values as SettingValues<S>;
  const lines = problems.map(({ variable, message }) => `  ${variable}: ${message}`);
  throw new ConfigError(`The configuration has problems:\n${lines.join('\n')}`);
}

/** A TCP port; 0 stands for any free port. */
export function port(defaultPort: number): ZodType<number, string | undefined> {
  return whole({ min: 0, max: 65_535, or: defaultPort });
}

/** A whole number within bounds. */
export function whole(bounds: { min: number; max: number; or: number }): ZodType<number, string | undefined> {
  return optionalWhole(bounds).transform((value) => value ?? bounds.or);
}

/** A whole number within bounds that may be missing. */
export function optionalWhole(bounds: { min: number; max: number }): ZodType<number | undefined, string | undefined> {
  const message = `Use a whole number from ${bounds.min} to ${bounds.max}`;
  return z
    .string()
    .regex(/^\d{1,16}$/, message)
    .transform(Number)
    .refine((value) => value >= bounds.min && value <= bounds.max, message)
    .optional();
}

/** One of a few words. */
export function oneOf<const Words extends readonly [string, ...string[]]>(
  words: Words,
  defaultWord: Words[number],
): ZodType<Words[number], string | undefined> {
  return z
    .enum(words, `Use one of ${words.join(', ')}`)
    .optional()
    .transform((word) => word ?? defaultWord);
}

/** `yes` or `no`. */
export function yesOrNo(otherwise: boolean): ZodType<boolean, string | undefined> {
  return z
    .enum(['yes', 'no'], 'Use yes or no')
    .optional()
    .transform((word) => (word === undefined ? otherwise : word === 'yes'));
}

/** A text that a schema accepts. */
export function text(
  defaultText: string,
  schema: ZodType<string, string> = z.string(),
): ZodType<string, string | undefined> {
  return schema.optional().transform((value) => value ?? defaultText);
}

/** A text that may be missing. */
export function optionalText(
  schema: ZodType<string, string> = z.string(),
): ZodType<string | undefined, string | undefined> {
  return schema.optional();
}

/** An `http:` or `https:` URL that may be missing, without its trailing slash. */
export function optionalUrl(): ZodType<string | undefined, string | undefined> {
  return z
    .url({ protocol: /^https?$/, error: 'Use an http or https URL' })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional();
}

/** Words separated by commas. `none` stands for an empty list, where the default is not empty. */
export function wordList(
  word: RegExp,
  message: string,
  or: readonly string[] = [],
): ZodType<readonly string[], string | undefined> {
  return z
    .string()
    .optional()
    .transform((list) => {
      if (list === undefined) return or;
      return list === 'none' ? [] : list.split(',').map((each) => each.trim());
    })
    .refine((list) => list.every((each) => word.test(each)), message);
}
