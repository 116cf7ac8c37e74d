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
const timeoutMs = 90_000;

/** Polls until the value is the expected one. (`expect.poll` does not work in concurrent tests.) */
export async function untilIs(read: () => Promise<unknown>, expected: unknown): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const answer = await read();
    if (answer === expected) return;
    if (performance.now() > deadline) throw new Error(`Expected ${String(expected)}, found ${String(answer)}`);
    await delay(100);
  }
}
