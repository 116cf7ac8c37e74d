/** Development servers: pages change with their sources, without a reload. */
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Application, InContainer } from './application.ts';
import { inPage } from './in-page.ts';

/** They compile a page at its first request. */
const slowly = { timeout: 120_000 };

export const developmentServers: readonly Application[] = [
  {
    name: 'vite',
    title: 'the development server of Vite, which listens on localhost',
    base: 'frontend',
    used: 'a page, and a module that changes while the page is open',
    use: async ({ page }, url, inContainer) => await seeChange(page, url, { inContainer, file: '/app/words.js' }),
  },
  {
    name: 'next',
    title: 'the development server of Next.js',
    base: 'frontend',
    used: 'a page that React renders, and a component that changes while the page is open',
    use: async ({ page }, url, inContainer) => await seeChange(page, url, { inContainer, file: '/app/app/words.js' }),
  },
  {
    name: 'django',
    title: 'the development server of Django, which listens on localhost',
    base: 'python',
    worksByPath: true,
    used: 'a form with a token against forgery, and the redirect after it',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByLabel('Your name').fill('Ada');
      await page.getByRole('button').click();
      await page.getByText('Hello Ada!').waitFor(slowly);
      expect(new URL(page.url()).pathname).toBe(new URL(url).pathname);
    },
  },
];

/** Opens a page that shows the words of a file, and changes the file. */
async function seeChange(
  page: Page,
  url: string,
  { inContainer, file }: { readonly inContainer: InContainer; readonly file: string },
): Promise<void> {
  await page.goto(url, slowly);
  await page.getByText('First words').waitFor(slowly);
  await page.getByText('The page runs').waitFor(slowly);
  await inPage(page, "(globalThis.mark = 'still here')");
  await untilShown(page, 'Other words', async (count) => {
    await inContainer(`echo 'export const words = "Other words, change ${count}";' > ${file}`);
  });
  expect(await inPage(page, 'globalThis.mark')).toBe('still here');
}

const maxChanges = 12;

/** Changes the file again until the page shows the words: a page misses the changes before its subscription to them. */
async function untilShown(page: Page, words: string, change: (count: number) => Promise<void>): Promise<void> {
  for (let count = 1; ; count += 1) {
    await change(count);
    const shown = page.getByText(words).waitFor({ timeout: 10_000 });
    const problem: unknown = await shown.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (problem === undefined) return;
    if (count === maxChanges) throw problem;
  }
}
