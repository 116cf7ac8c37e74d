// Takes about 9 s
/** The reference page as browsers show it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { inChromium, TestBrowser } from '../../test/kit/browser/browser.ts';
import { addUser, password } from '../testing/people.ts';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

const parts = new AsyncDisposableStack();
let api: TestApi;
let browser: TestBrowser;

inChromium(() => {
  beforeAll(async () => {
    api = parts.use(await openTestApi());
    await addUser(api, 'ada@example.com', 'acme', 'member');
    browser = parts.use(await TestBrowser.open());
  });
  afterAll(async () => await parts.disposeAsync());

  // On one page: a browser takes 3 s of a core to show the reference.
  test('shows every group of operations in the colours that the browser prefers, sends a request with an access token, and loads nothing from other hosts', async () => {
    await using opened = await browser.newPage({ colorScheme: 'dark' });
    const { page } = opened;
    await page.goto(`${api.base}/docs#/Services/listServices`);
    await page.getByRole('heading', { name: /^Berth service API/ }).waitFor();
    const { body: document } = await api.call('GET', '/openapi.json');
    const groups = await page
      .locator('.opblock-tag')
      .evaluateAll((tags) => tags.map((tag) => tag.getAttribute('data-tag')));
    expect(groups).toEqual(document.tags.map(({ name }: { name: string }) => name));
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods as object));
    expect(await page.locator('.opblock').count()).toBe(operations.length);
    const background = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    expect(Number(/\d+/.exec(background)?.[0])).toBeLessThan(64);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('html:not(.dark-mode)').waitFor();
    await page.getByRole('button', { name: 'Authorize' }).click();
    await page.getByLabel('auth-bearer-value').fill(api.token);
    await page.getByRole('button', { name: 'Apply credentials' }).first().click();
    await page.getByRole('button', { name: 'Close' }).last().click();
    expect(await tryServices(page)).toBe('200');
    expect(await page.locator('.live-responses-table .response-col_description').nth(1).innerText()).toContain('draw');
    expect(opened.problems).toEqual([]);
    expect(opened.requestsOutside(api.base)).toEqual([]);
  });

  test('sends a request with the session of a user who has logged in', async () => {
    await using opened = await browser.newPage();
    const { page } = opened;
    await page.goto(`${api.base}/login`);
    await page.getByLabel('E-mail address').fill('ada@example.com');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('You are logged in as ada@example.com.').waitFor();
    await page.goto(`${api.base}/docs`);
    await page.locator('#operations-Services-listServices .opblock-summary-control').click();
    expect(await page.getByRole('link', { name: 'logged in' }).getAttribute('href')).toBe('/login');
    expect(await tryServices(page)).toBe('200');
  });
});

/** Sends the request that lists services, and returns the status that the page shows. */
async function tryServices(page: Page): Promise<string> {
  const operation = page.locator('#operations-Services-listServices');
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByPlaceholder('account').fill('acme');
  await operation.getByRole('button', { name: 'Execute' }).click();
  return (await operation.locator('.live-responses-table .response-col_status').nth(1).innerText()).trim();
}
