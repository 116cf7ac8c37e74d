/**
 * What a run of tests must not go without. Tests that lack something are skipped, so that everybody can run the others; where
 * all of it should be there, as in CI, a skipped test hides a failure.
 */

/** Names what must be tested: `all`, or some of `parts`. */
export const requiredVariable = 'BERTH_TEST_REQUIRE';

/** What may be missing on a machine. */
const parts = ['docker', 'modern-docker', 'stores', 'clients', 'tools'] as const;

export type Part = (typeof parts)[number];

/** Something that cannot be tested here, and why. */
export interface Missing {
  readonly part: Part;
  readonly what: string;
  readonly why: string;
}

export interface Required {
  readonly parts: ReadonlySet<Part>;
  /** Whether no test may be skipped, for whatever it lacks. */
  readonly everyTest: boolean;
}

/** Throws if the variable names something unknown. */
export function parseRequired(text: string | undefined): Required {
  const names = (text ?? '').split(',').filter(Boolean);
  const unknown = names.find((name) => name !== 'all' && !parts.includes(name as Part));
  if (unknown !== undefined) {
    throw new Error(`${requiredVariable}: "${unknown}" is not one of all, ${parts.join(', ')}`);
  }
  const everyTest = names.includes('all');
  return { everyTest, parts: new Set(everyTest ? parts : (names as Part[])) };
}

/** What is required and has not been tested, a line each: what is missing, and tests that were skipped. */
export function unmet(required: Required, missing: readonly Missing[], skippedTests: readonly string[]): string[] {
  return [
    ...missing.filter(({ part }) => required.parts.has(part)).map(({ what, why }) => `${what}: ${why}`),
    ...(required.everyTest ? skippedTests : []),
  ];
}
