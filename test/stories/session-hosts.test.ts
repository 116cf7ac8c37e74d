// Takes about 25 s
/** An ordinary application, with absolute paths, cookies and a WebSocket, behind session URLs by host and by path. */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { inChromium, TestBrowser } from '../kit/browser/browser.ts';
import type { TestPage } from '../kit/browser/browser.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { storeAndPull } from '../kit/engines/stored-images.ts';
import { nodeImage } from '../kit/engines/node-image.ts';
import { echo } from '../kit/platform/echo.ts';
import { askSession, sessionSocket } from '../kit/platform/session-client.ts';
import { createAdministrator, logIn } from './administrator.ts';
import { Fixture } from './fixture.ts';

const [engine] = testEngines();
const domain = 'sessions.berth.localhost';
const folder = fileURLToPath(new URL('ordinary-app', import.meta.url));

interface Who {
  readonly user: string | null;
  readonly cookies: readonly string[];
  readonly prefix: string | null;
  readonly url: string | null;
  readonly backend: string;
}

describe.skipIf(engine === undefined)(`session hosts${engine ? '' : ' (skipped: no Docker Engine)'}`, () => {
  const parts = new AsyncDisposableStack();
  let fixture: Fixture;

  beforeAll(async () => {
    if (engine === undefined) return;
    fixture = parts.use(await Fixture.open({ engine, drivers: 'embedded' }, { BERTH_SESSION_DOMAIN: domain }));
    const image = await nodeImage({ tag: 'berth-test/ordinary:latest', folder, packages: ['express', 'ws'] });
    await storeAndPull(engine, fixture.platform, { image, service: 'ordinary' });
  });
  afterAll(async () => await parts.disposeAsync());

  const connect = async (request = {}) => await fixture.connectReady('ordinary', request);

  async function who({ url }: ConnectResponse, cookie = ''): Promise<Who> {
    const answer = await askSession(`${url}who`, { headers: { cookie } });
    expect(answer.status).toBe(200);
    return JSON.parse(answer.body) as Who;
  }

  test('absolute paths, redirects, cookies and a WebSocket work at the host of the session', async () => {
    const session = await connect({ key: 'host', user: 'Ada' });
    const { hostname, origin, port } = new URL(session.url);
    expect([hostname, port]).toEqual([
      expect.stringMatching(/^[a-z2-7]{52}\.sessions\.berth\.localhost$/),
      new URL(fixture.platform.proxyUrl).port,
    ]);
    expect((await askSession(session.url)).body).toContain('src="/static/page.js"');
    expect((await askSession(`${origin}/static/style.css`)).body).toContain('rgb(1, 2, 3)');
    const login = await askSession(`${origin}/login`, { method: 'POST' });
    expect([login.status, login.headers.location]).toEqual([302, '/']);
    const [id = '', ...others] = login.headers['set-cookie'] ?? [];
    expect(id).toMatch(/^id=\w+; Path=\/; HttpOnly$/);
    expect(others).toEqual(['__Host-strict=1; Path=/; Secure', 'wide=1; Path=/']);
    expect((await askSession(`${origin}/absolute`)).headers.location).toBe(`${origin}/who`);
    expect(await who(session, 'id=1; __Host-berth-session=x')).toMatchObject({
      user: 'Ada',
      cookies: ['id=1'],
      prefix: null,
    });
    const socket = sessionSocket(`${origin}/live`);
    const [first] = (await once(socket, 'message')) as [Buffer];
    expect([first.toString(), await echo(socket)]).toEqual(['live', 'still here']);
    socket.close();
    await once(socket, 'close');
  });

  test('in the path form, redirects and cookies stay in the session, and bodies are unchanged', async () => {
    const session = await connect({ key: 'path', url_form: 'path' });
    const prefix = `/${session.token}`;
    expect(session.url).toBe(`${fixture.platform.proxyUrl}${prefix}/`);
    expect((await askSession(session.url)).body).toContain('src="/static/page.js"');
    const login = await askSession(`${session.url}login`, { method: 'POST' });
    expect(login.headers.location).toBe(`${prefix}/`);
    expect(login.headers['set-cookie']?.[0]).toMatch(new RegExp(`; Path=${prefix}/; HttpOnly$`));
    expect((await askSession(`${session.url}absolute`)).headers.location).toBe(`${prefix}/who`);
    expect((await who(session)).prefix).toBe(prefix);
  });

  test('the token of a host URL also works as a path, for clients that cannot resolve the host', async () => {
    const session = await connect({ key: 'host', user: 'Ada' });
    const byPath = await fetch(`${fixture.platform.proxyUrl}/${session.token}/who`);
    expect(((await byPath.json()) as Who).backend).toBe(session.backend_id);
  });

  test('the container has its URL in a variable, and the URL works for clients without a user', async () => {
    const { url } = await who(await connect({ key: 'host', user: 'Ada' }));
    expect(url).toBe((await connect({ key: 'host' })).url);
    const unnamed = await who(await connect({ user: 'Ada' }));
    expect(JSON.parse((await askSession(`${unnamed.url}who`)).body)).toMatchObject({
      user: null,
      backend: unnamed.backend,
    });
  });

  test('the URL of a key leads to its next holder, and a new connect of the client returns the same URL', async () => {
    const first = await connect({ key: 'again', user: 'Ada' });
    await fixture.terminate(first, true);
    await fixture.statusesUntil(first, 'terminated');
    expect((await askSession(first.url)).status).toBe(410);
    const next = await fixture.connect('ordinary', { key: 'again', user: 'Ada' });
    expect([next.url, next.backend_id === first.backend_id]).toEqual([first.url, false]);
    // The proxy holds the request until the backend is ready.
    expect(await who(next)).toMatchObject({ backend: next.backend_id, user: 'Ada' });
    const page = await fetch(next.ready_url, { redirect: 'manual' });
    expect([page.status, page.headers.get('location')]).toEqual([303, next.url]);
  });

  inChromium(() => {
    let browser: TestBrowser;
    beforeAll(async () => void (browser = parts.use(await TestBrowser.open())));

    /** Opens the page of a session, and waits until its scripts have run. */
    async function visit({ page }: TestPage, { url }: ConnectResponse): Promise<string> {
      await page.goto(url);
      await page.locator('#live').getByText('live').waitFor();
      await page.locator('#who').getByText('visit').waitFor();
      return await page.locator('#who').innerText();
    }

    test('the page has its assets, cookies and WebSocket, and stays at its origin', async () => {
      const session = await connect({ key: 'page', user: 'Ada' });
      await using opened = await browser.newPage();
      expect(await visit(opened, session)).toBe('Ada, visit 1, 0 cookies');
      await opened.page.getByRole('button', { name: 'Log in' }).click();
      await opened.page.locator('#who').getByText('Ada, visit 2, 3 cookies').waitFor();
      const color = await opened.page.evaluate("getComputedStyle(document.querySelector('h1')).color");
      expect(color).toBe('rgb(1, 2, 3)');
      const cookies = await opened.page.context().cookies();
      expect(new Set(cookies.map((each) => each.domain))).toEqual(new Set([new URL(session.url).hostname]));
      expect(
        opened.requestsOutside(new URL(session.url).origin, session.url.replace('http', 'ws').slice(0, -1)),
      ).toEqual([]);
      expect(opened.problems).toEqual([]);
    });

    test('local storage, cookies and service workers persist across reconnects with the same key and user only', async () => {
      const request = { key: 'stored', user: 'Ada' };
      const first = await connect(request);
      await using opened = await browser.newPage();
      await visit(opened, first);
      await opened.page.getByRole('button', { name: 'Log in' }).click();
      await opened.page.locator('#who').getByText('Ada, visit 2, 3 cookies').waitFor();
      const register = "navigator.serviceWorker.register('/static/worker.js', { scope: '/' })";
      const controlled = 'navigator.serviceWorker.ready.then(({ scope }) => scope)';
      expect(await opened.page.evaluate(`${register}.then(() => ${controlled})`)).toBe(first.url);
      await fixture.terminate(first, true);
      await fixture.statusesUntil(first, 'terminated');
      expect(await visit(opened, await connect(request))).toBe('Ada, visit 3, 3 cookies');
      expect(await opened.page.evaluate('navigator.serviceWorker.controller?.scriptURL')).toBe(
        `${first.url}static/worker.js`,
      );
      expect(await visit(opened, await connect({ ...request, user: 'Grace' }))).toBe('Grace, visit 1, 0 cookies');
      expect(await visit(opened, await connect({ ...request, key: 'other' }))).toBe('Ada, visit 1, 0 cookies');
    });

    test('the page of a session reads neither the cookies nor the answers of another session', async () => {
      const [one, other] = [await connect({ key: 'host' }), await connect({ key: 'path' })];
      await using opened = await browser.newPage();
      const { page } = opened;
      for (const session of [one, other]) {
        await visit(opened, session);
        await page.getByRole('button', { name: 'Log in' }).click();
        await page.locator('#who').getByText('3 cookies').waitFor();
      }
      // `page` now shows the other session.
      const read = `fetch('${one.url}who', { credentials: 'include' }).then((answer) => answer.text(), () => 'rejected')`;
      const result = { read: await page.evaluate(read), cookies: await page.evaluate('document.cookie') };
      expect(result).toEqual({
        read: 'rejected',
        cookies: expect.stringMatching(/^(?:__Host-strict=1; wide=1|wide=1; __Host-strict=1)$/),
      });
    });

    test('the page of a session reaches the API neither as the user who is logged in there, nor at its own host', async () => {
      const session = await connect({ key: 'path' });
      // A host of the same site as the hosts of sessions.
      const api = `http://api.berth.localhost:${new URL(fixture.platform.apiUrl).port}`;
      await using opened = await browser.newPage();
      const { page } = opened;
      await createAdministrator(page, { dataFolder: fixture.platform.dataFolder, apiUrl: api });
      await logIn(page);
      await page.getByText('You are logged in').waitFor();
      expect((await page.goto(`${api}/auth`))?.status()).toBe(200);
      const cookies = async () => await page.context().cookies(api.replace('http:', 'https:'));
      const before = await cookies();
      expect(before.map(({ name }) => name)).toContain('__Host-berth-session');

      await visit(opened, session);
      const statusOf = async (url: string, method: string) => {
        const answered = page.waitForResponse(url);
        await page.evaluate(
          `fetch('${url}', { method: '${method}', mode: 'no-cors', credentials: 'include' }).catch(() => {})`,
        );
        return (await answered).status();
      };
      expect(await statusOf(`${api}/auth`, 'GET')).toBe(403);
      expect(await statusOf(`${api}/v2/user/password`, 'POST')).toBe(403);
      for (const attributes of ['', '; Domain=berth.localhost', '; Domain=api.berth.localhost']) {
        await page.evaluate(`document.cookie = '__Host-berth-session=forged; Path=/; Secure${attributes}'`);
      }
      expect(await cookies()).toEqual(before);
      const ownHost = `http://${new URL(session.url).hostname}:${new URL(api).port}`;
      expect((await page.goto(`${ownHost}/login`))?.status()).toBe(421);
    });
  });
});
