/** Code of tests that runs in the pages of applications. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';

/** Evaluates an expression in a page, which can use the functions of `in-page.js`. */
export async function inPage(page: Page, expression: string): Promise<unknown> {
  const module = await readFile(join(import.meta.dirname, 'in-page.js'), 'utf8');
  const functions = module.replaceAll(/^export /gm, '');
  return await page.evaluate(`(async () => { ${functions}\nreturn await (${expression}); })()`);
}

/** A page or an application may be slow on a busy machine. */
const answerWithinMs = 90_000;

/** Asks until the answer is the expected one. (`expect.poll` works only where tests run one after another.) */
export async function untilIs(ask: () => Promise<unknown>, expected: unknown): Promise<void> {
  const deadline = performance.now() + answerWithinMs;
  for (;;) {
    const answer = await ask();
    if (answer === expected) return;
    if (performance.now() > deadline) throw new Error(`Expected ${String(expected)}, found ${String(answer)}`);
    await delay(100);
  }
}
