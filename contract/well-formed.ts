/** Unicode in requests. Drivers and headers cannot carry half of a surrogate pair, which JSON can spell. */
import { z } from 'zod';

/** Anything in which every text, names of fields included, is well-formed Unicode. The first text that is not is named. */
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
