/** The pages for logging in, and what a session can do, in a browser. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessibilityProblems } from '../../test/kit/browser/accessibility.ts';
import { inChromium, TestBrowser } from '../../test/kit/browser/browser.ts';
import { addAdmin, addUser, logIn, password } from '../testing/people.ts';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

const parts = new AsyncDisposableStack();
let api: TestApi;
let browser: TestBrowser;
/** The origin of a page that is not ours, on the same host. */
let otherOrigin: string;

inChromium(() => {
  beforeAll(async () => {
    api = parts.use(await openTestApi());
    await addAdmin(api, 'root@example.com', 'acme');
    await addUser(api, 'ada@example.com', 'acme', 'owner');
    const other = createServer((_request, response) => response.end('<h1>Another page</h1>'));
    await once(other.listen(0, '127.0.0.1'), 'listening');
    parts.defer(() => void other.close());
    otherOrigin = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    browser = parts.use(await TestBrowser.open());
  });
  afterAll(async () => await parts.disposeAsync());

  test('a user logs in, creates a token that is shown only once, revokes it and logs out', async () => {
    await using opened = await browser.newPage();
    const { page } = opened;
    await page.goto(`${api.base}/login`);
    await enter(page, 'ada@example.com', 'not the password');
    await page.getByRole('alert').getByText('The e-mail address or the password is wrong').waitFor();
    await page.goBack();
    await enter(page, 'ada@example.com', password);
    await page.getByText('You are logged in as ada@example.com.').waitFor();
    expect(await page.evaluate('document.cookie')).toBe('');

    // A page of ours that may send requests.
    await page.goto(`${api.base}/openapi.json`);
    const created = await send(page, 'POST', '/v2/account/acme/token', { name: 'laptop', scopes: ['read'] });
    expect([created.status, created.body.token]).toEqual([201, expect.stringMatching(/^acme\.berth_pat_/)]);
    expect((await api.get('/v2/account/acme/services', created.body.token)).status).toBe(200);
    const listed = await send(page, 'GET', '/v2/account/acme/tokens');
    expect(JSON.stringify(listed.body)).toContain('laptop');
    expect(JSON.stringify(listed.body)).not.toContain(created.body.token.split('.')[1]);
    const revoked = await send(page, 'POST', `/v2/account/acme/token/${created.body.id}/revoke`);
    expect(revoked.status).toBe(200);
    expect((await api.get('/v2/account/acme/services', created.body.token)).status).toBe(401);

    await page.goto(`${api.base}/login`);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    await page.goto(`${api.base}/openapi.json`);
    expect((await send(page, 'GET', '/v2/account/acme/tokens')).status).toBe(401);
    expect(opened.requestsOutside(api.base)).toEqual([]);
  });

  test('a page of another origin cannot use the session, not even on the same host', async () => {
    await using opened = await browser.newPage();
    const { page } = opened;
    await page.goto(`${api.base}/login`);
    await enter(page, 'ada@example.com', password);
    await page.getByText('You are logged in').waitFor();
    await page.goto(otherOrigin);
    const blind = `fetch('${api.base}/v2/account/acme/service', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"name":"planted"}' })`;
    const answered = page.waitForResponse(`${api.base}/v2/account/acme/service`);
    await page.evaluate(`${blind}.then(() => {})`);
    expect((await answered).status()).toBe(403);
    const readable = `fetch('${api.base}/v2/account/acme/services', { credentials: 'include' }).then(() => true, () => false)`;
    expect(await page.evaluate(readable)).toBe(false);
    expect((await api.get('/v2/account/acme/services')).body.services).not.toContain('planted');
  });

  test('the link of an invitation fills in the form; without scripts, the user types the fields', async () => {
    const admin = await logIn(api, 'root@example.com');
    const { url } = (await admin.post('/v2/user', { user_email: 'new@example.com' })).body;
    const code = new URLSearchParams(new URL(url).hash.slice(1)).get('code') ?? '';
    await using opened = await browser.newPage();
    const { page } = opened;
    await page.goto(url);
    // The browser itself refuses a short password, which would lead to a page without the code.
    await page.getByLabel('New password').fill('too short');
    await page.getByRole('button').click();
    expect(await page.locator('input:invalid').count()).toBe(1);
    await page.getByLabel('New password').fill(password);
    expect(await page.getByLabel('E-mail address').inputValue()).toBe('new@example.com');
    expect(page.url()).toBe(`${api.base}/invitation`);
    await using plain = await browser.newPage({ javaScript: false });
    await plain.page.goto(url);
    await plain.page.getByLabel('E-mail address').fill('new@example.com');
    await plain.page.getByLabel('Code').fill(code);
    await plain.page.getByLabel('New password').fill(password);
    await plain.page.getByRole('button').click();
    await enter(plain.page, 'new@example.com', password);
    await plain.page.getByText('You are logged in as new@example.com.').waitFor();
  });

  test('the pages are accessible, in light and dark colours', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await using opened = await browser.newPage({ colorScheme, size: { width: 320, height: 640 } });
      for (const path of ['/login', '/setup', '/invitation']) {
        await opened.page.goto(api.base + path);
        expect([path, await accessibilityProblems(opened.page)]).toEqual([path, []]);
        const isTooWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
        expect([path, await opened.page.evaluate(isTooWide)]).toEqual([path, false]);
      }
      expect(opened.problems).toEqual([]);
    }
  });
});

async function enter(page: Page, email: string, typed: string): Promise<void> {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(typed);
  await page.getByRole('button', { name: 'Log in' }).click();
}

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a client sees has no type
  readonly body: any;
}

/** Sends a request from the page, with the cookie of its session. */
async function send(page: Page, method: string, path: string, body?: object): Promise<Answer> {
  const init = { method, ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }) };
  return await page.evaluate(
    async ([url, options]) => {
      const answer = await fetch(url, options);
      return { status: answer.status, body: await answer.json() };
    },
    [api.base + path, init] as const,
  );
}
