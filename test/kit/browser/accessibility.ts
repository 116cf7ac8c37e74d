/** Checks of pages by axe, the engine behind most accessibility checkers. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** What WCAG 2.2 demands at the levels A and AA, as far as a program can check it. */
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** Returns what is wrong with the page as it is now: a rule, and the elements that violate it. The page must run scripts. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async (values) => {
    const { axe: engine } = globalThis as unknown as { axe: typeof axe };
    return (await engine.run({ runOnly: { type: 'tag', values } })).violations;
  }, rules);
  return violations.map(({ help, nodes }) => `${help}: ${nodes.map(({ html }) => html).join(', ')}`);
}
