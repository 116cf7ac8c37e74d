// Takes about 10 s
/** The readiness page as browsers show it. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pullProgressed } from '../../contract/messages.ts';
import { advance, assign, becomeTerminated } from '../../model/backend.ts';
import { accessibilityProblems } from '../../test/kit/browser/accessibility.ts';
import { inChromium, TestBrowser } from '../../test/kit/browser/browser.ts';
import type { TestPage } from '../../test/kit/browser/browser.ts';
import { addUser, password } from '../testing/people.ts';
import { becomeServing, connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';
import { openTestNode } from '../testing/test-node.ts';

const mebibyte = 1024 * 1024;

let browser: TestBrowser;
let api: TestApi;
let applicationUrl: string;
const parts = new AsyncDisposableStack();

inChromium(() => {
  beforeAll(async () => {
    // In place of the proxy: the page only has to redirect there.
    const application = createServer((_request, response) => response.end('<h1>The application</h1>'));
    await once(application.listen(0, '127.0.0.1'), 'listening');
    parts.defer(() => void application.close());
    applicationUrl = `http://127.0.0.1:${(application.address() as AddressInfo).port}`;
    api = parts.use(await openTestApi({ proxyUrl: applicationUrl }));
    browser = parts.use(await TestBrowser.open());
  });
  afterAll(async () => await parts.disposeAsync());

  test('shows each step, and leads to the application when it is ready', async () => {
    const { id, url } = await connect();
    await using opened = await browser.newPage();
    const { page } = opened;
    await page.goto(url);
    await shows(opened, 'Starting your session', 'Waiting for capacity…');
    expect(await page.locator('progress').isHidden()).toBe(true);

    await api.change(id, (current) => advance(assign(current, 'node-1'), 'loading', new Date()));
    await shows(opened, 'Starting your session', 'Fetching the image…');
    for (const downloadedMebibytes of [5, 15]) {
      await pulled(id, downloadedMebibytes);
      const detail = `Fetching the image… 3 of 7 layers, ${downloadedMebibytes} MiB of 20 MiB`;
      await shows(opened, 'Starting your session', detail);
      expect(await page.locator('progress').getAttribute('value')).toBe(String(downloadedMebibytes / 20));
    }
    await api.change(id, (current) => advance(current, 'starting', new Date()));
    await shows(opened, 'Starting your session', 'Starting the container…');
    await api.change(id, becomeServing);
    await page.waitForURL(`${applicationUrl}/**`);
    expect(await page.getByRole('heading').textContent()).toBe('The application');
    // Scripts show the steps without another document.
    expect(opened.requested.filter((each) => each === url)).toHaveLength(1);
    expect(opened.problems).toEqual([]);
    expect(opened.requestsOutside(api.base, applicationUrl)).toEqual([]);
  });

  test('does the same without scripts: it reloads itself', async () => {
    const { id, url } = await connect();
    await using opened = await browser.newPage({ javaScript: false });
    const { page } = opened;
    await page.goto(url);
    await shows(opened, 'Starting your session', 'Waiting for capacity…');
    await api.change(id, (current) => advance(assign(current, 'node-1'), 'loading', new Date()));
    await pulled(id, 5);
    await shows(opened, 'Starting your session', 'Fetching the image… 3 of 7 layers, 5 MiB of 20 MiB');
    await api.change(id, becomeServing);
    await page.waitForURL(`${applicationUrl}/**`);
    expect(opened.requestsOutside(api.base, applicationUrl)).toEqual([]);
  });

  test('follows the backend again after a load balancer in between has answered instead of the API', async () => {
    const { id, url } = await connect();
    await using opened = await browser.newPage();
    const { page } = opened;
    await page.route(`${url}events`, async (route) => await route.fulfill({ status: 502, body: '' }), { times: 1 });
    await page.goto(url);
    await expect.poll(() => opened.requested.filter((each) => each === `${url}events`).length).toBe(2);
    await api.change(id, becomeServing);
    await page.waitForURL(`${applicationUrl}/**`);
  });

  test.each([
    ['with', true],
    ['without', false],
  ])('shows why a backend could not start, %s scripts', async (_with, javaScript) => {
    const { id, url } = await connect();
    await using opened = await browser.newPage({ javaScript });
    await opened.page.goto(url);
    await api.change(id, (current) =>
      becomeTerminated(assign(current, 'node-1'), { kind: null, reason: null, exitCode: 3 }, new Date()),
    );
    await shows(opened, 'The session could not start', 'The container exited with code 3 before it was ready.');
    expect(await opened.page.locator('.ring, progress').count()).toBe(0);
    expect(opened.requestsOutside(api.base)).toEqual([]);
  });

  test('shows members what a container logged as text, whatever it contains', async () => {
    const attacks = ['</pre><script>document.title = "taken"</script>', '<img src=x onerror="document.title = 1">'];
    const records = attacks.map((line, i) => `${JSON.stringify({ at: `1767225600.000000000-${i}`, line })}\n`);
    await using _node = await openTestNode(api, (_request, response) => response.end(records.join('')));
    await addUser(api, 'ada@example.com', 'acme', 'viewer');
    const { id, url } = await connect();
    await api.change(id, (current) =>
      becomeTerminated(assign(current, 'node-1'), { kind: null, reason: null, exitCode: 3 }, new Date()),
    );
    await using opened = await browser.newPage({ colorScheme: 'dark' });
    const { page } = opened;
    await page.goto(url);
    await page.getByRole('link', { name: 'log in' }).click();
    await page.getByLabel('E-mail address').fill('ada@example.com');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
    const log = page.getByRole('region', { name: 'Last lines of the log' });
    expect(await log.textContent()).toBe(attacks.join('\n'));
    expect(page.url()).toBe(url);
    expect(await page.title()).toBe('The session could not start');
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(opened.requestsOutside(api.base)).toEqual([]);
  });

  test.each([
    ['light', 'rgb(255, 255, 255)'],
    ['dark', 'rgb(18, 18, 18)'],
  ] as const)('can be read in %s colours', async (colorScheme, background) => {
    const { url } = await connect();
    await using opened = await browser.newPage({ colorScheme });
    const { page } = opened;
    await page.goto(url);
    expect(await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')).toBe(background);
    expect(await accessibilityProblems(page)).toEqual([]);
  });
});

async function connect(): Promise<{ id: string; url: string }> {
  const { body } = await api.post(connectPath);
  return { id: body.backend_id, url: body.ready_url };
}

/** Publishes how much of an image of 20 MiB is downloaded. */
async function pulled(backend: string, mebibytes: number): Promise<void> {
  const downloadedBytes = mebibytes * mebibyte;
  const progress = { layers: 7, layersDone: 3, downloadedBytes, totalBytes: 20 * mebibyte };
  await api.bus.publish(pullProgressed, { backend, progress });
}

/** Waits until the page shows this. A page without scripts reloads itself for that. */
async function shows({ page }: TestPage, title: string, detail: string): Promise<void> {
  await page.getByRole('heading', { name: title }).waitFor();
  await page.getByText(detail, { exact: true }).waitFor();
}
