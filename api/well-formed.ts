/** Checks the Unicode in requests. JSON can contain a lone surrogate, which drivers and headers cannot carry. */
import { ZodError } from 'zod';

/** Throws a `ZodError` with the path of the first string or field name that is not well-formed Unicode. */
export function assertWellFormed(input: unknown): void {
  const path = illFormedPath(input);
  if (path) throw new ZodError([{ code: 'custom', message: 'Not well-formed Unicode', path, input }]);
}

function illFormedPath(value: unknown): string[] | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : [];
  if (typeof value !== 'object' || value === null) return undefined;
  for (const name of Object.keys(value)) {
    const path = name.isWellFormed() ? illFormedPath((value as Record<string, unknown>)[name]) : [];
    if (path) return [name, ...path];
  }
  return undefined;
}
