/**
 * The parts that a run of tests requires. Tests whose programs are missing are skipped, so that developers can run the others; in
 * CI, where everything should be installed, a skipped test hides a failure.
 */

/** The variable with the required parts: `all`, or some of `parts`. */
export const requiredVariable = 'BERTH_TEST_REQUIRE';

/** The parts that a machine may lack. */
const parts = ['docker', 'modern-docker', 'stores', 'clients', 'tools', 'browser'] as const;

export type Part = (typeof parts)[number];

/** Something that cannot be tested here, and why. */
export interface Missing {
  readonly part: Part;
  readonly what: string;
  readonly why: string;
}

export interface Required {
  readonly parts: ReadonlySet<Part>;
  /** Whether no test may be skipped at all. */
  readonly everyTest: boolean;
}

/** Parses the variable. Throws if it contains an unknown part. */
export function parseRequired(text: string | undefined): Required {
  const names = (text ?? '').split(',').filter(Boolean);
  const unknown = names.find((name) => name !== 'all' && !parts.includes(name as Part));
  if (unknown !== undefined) {
    throw new Error(`${requiredVariable}: "${unknown}" is not one of all, ${parts.join(', ')}`);
  }
  const everyTest = names.includes('all');
  return { everyTest, parts: new Set(everyTest ? parts : (names as Part[])) };
}

/** Returns requirements that are not met, one per line: missing parts, and skipped tests. */
export function unmet(required: Required, missing: readonly Missing[], skippedTests: readonly string[]): string[] {
  return [
    ...missing.filter(({ part }) => required.parts.has(part)).map(({ what, why }) => `${what}: ${why}`),
    ...(required.everyTest ? skippedTests : []),
  ];
}
