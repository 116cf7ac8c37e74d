/** Checks of pages by axe, the engine behind most accessibility checkers. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** The rules of WCAG 2.2 at the levels A and AA that a program can check. */
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** Returns the problems of a page in its current state: a rule, and the elements that violate it. The page must run scripts. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async (values) => {
    const { axe: engine } = globalThis as unknown as { axe: typeof axe };
    return (await engine.run({ runOnly: { type: 'tag', values } })).violations;
  }, rules);
  return violations.map(({ help, nodes }) => `${help}: ${nodes.map(({ html }) => html).join(', ')}`);
}
