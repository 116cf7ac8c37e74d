/** Pages in a browser: the set-up, the readiness pages, the sample application, and the log of an application that fails. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inChromium, TestBrowser } from '../kit/browser/browser.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { createAdministrator, logIn } from './administrator.ts';
import { Fixture } from './fixture.ts';

const [engine] = testEngines();

describe.skipIf(engine === undefined)(`pages${engine === undefined ? ' (skipped: no Docker Engine)' : ''}`, () => {
  inChromium(() => {
    const parts = new AsyncDisposableStack();
    let fixture: Fixture;
    let browser: TestBrowser;

    beforeAll(async () => {
      if (engine === undefined) return;
      fixture = parts.use(await Fixture.open({ engine, drivers: 'embedded' }));
      browser = parts.use(await TestBrowser.open());
      await Promise.all([fixture.pushSample(), fixture.push('failing')]);
    });
    afterAll(async () => await parts.disposeAsync());

    test('the readiness page leads through the proxy to the application', async () => {
      const { ready_url: url, url: sessionUrl } = await fixture.connect('pad', { key: 'room-1' });
      await using opened = await browser.newPage();
      const { page } = opened;
      await page.goto(url);
      await page.waitForURL(sessionUrl);
      await page.getByRole('heading', { name: 'Pad' }).waitFor();
      // It is connected with its WebSocket.
      await page.getByRole('list', { name: 'Who is here' }).getByRole('listitem').first().waitFor();
      expect(opened.requestsOutside(fixture.platform.apiUrl, fixture.platform.proxyUrl)).toEqual([]);
      expect(opened.problems).toEqual([]);
    });

    test('a new administrator reads why an application failed', async () => {
      const { apiUrl } = fixture.platform;
      await using opened = await browser.newPage();
      const { page } = opened;
      await createAdministrator(page, fixture.platform);
      const { ready_url: url } = await fixture.connect('failing');
      await page.goto(url);
      await page.getByText('The container exited with code 1 before it was ready.').waitFor();
      expect(await page.locator('body').innerText()).not.toContain('cannot go on');
      await page.getByRole('link', { name: 'log in' }).click();
      await logIn(page);
      await page.waitForURL(url);
      const log = page.getByRole('region', { name: 'Last lines of the log' });
      expect(await log.innerText()).toBe('This backend cannot go on');
      expect(opened.requestsOutside(apiUrl)).toEqual([]);
    });

    test('a browser that opens a session while its backend starts shows the progress, then the requested page', async () => {
      const { apiUrl } = fixture.platform;
      await using opened = await browser.newPage();
      const { page } = opened;
      await page.goto(`${apiUrl}/login`);
      await logIn(page);
      await page.getByText('ada@example.com').waitFor();
      // A page that may send requests.
      await page.goto(`${apiUrl}/docs`);
      const post = async (path: string) =>
        await page.evaluate(async (to) => (await fetch(to, { method: 'POST' })).status, path);
      // Nothing starts on a drained node.
      const { node } = fixture.platform;
      expect(await post(`/v2/node/${node}/drain`)).toBe(200);
      const { url, ready_url: readyUrl } = await fixture.connect('pad', { key: 'room-2' });
      const target = `${url}deep/page?x=1#there`;
      await page.goto(target);
      await page.getByText('Waiting for capacity').waitFor();
      expect(new URL(page.url()).pathname).toBe(new URL(readyUrl).pathname);
      expect(await post(`/v2/node/${node}/undrain`)).toBe(200);
      await page.waitForURL(target);
    });
  });
});
