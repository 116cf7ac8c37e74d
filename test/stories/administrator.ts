/** The first administrator, as a person creates it and logs in with a browser. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import type { TestPlatform } from '../kit/platform/platform.ts';

const email = 'ada@example.com';
const password = 'correct horse battery';

/** Creates the administrator at an origin of the API. The page of the log-in follows. */
export async function createAdministrator(
  page: Page,
  { dataFolder, apiUrl }: Pick<TestPlatform, 'dataFolder' | 'apiUrl'>,
): Promise<void> {
  await page.goto(`${apiUrl}/setup`);
  await page.getByLabel('Set-up code').fill(await readFile(join(dataFolder, 'setup-code'), 'utf8'));
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('New password').fill(password);
  await page.getByRole('button', { name: 'Create the first administrator' }).click();
  await page.waitForURL(`${apiUrl}/login`);
}

/** Logs the administrator in at the page of the log-in. */
export async function logIn(page: Page): Promise<void> {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}
