/** Checks the Unicode in requests. JSON can contain a lone surrogate, which drivers and headers cannot carry. */
import { z } from 'zod';

/** Any value whose strings and field names are all well-formed Unicode. The error has the path of the first one that is not. */
export const wellFormed = z.unknown().superRefine((value, context) => {
  const path = illFormedPath(value, []);
  if (path) context.addIssue({ code: 'custom', message: 'Not well-formed Unicode', path });
});

function illFormedPath(value: unknown, path: readonly string[]): string[] | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : [...path];
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, item] of Object.entries(value)) {
    const itemPath = [...path, name];
    const found = name.isWellFormed() ? illFormedPath(item, itemPath) : itemPath;
    if (found) return found;
  }
  return undefined;
}
