/** The built client in a page: from the server of the API, and from another origin. */
import { execFile } from 'node:child_process';
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { addUser, password } from '../api/testing/people.ts';
import { becomeServing, openTestApi } from '../api/testing/test-api.ts';
import type { TestApi } from '../api/testing/test-api.ts';
import { advance, assign, becomeTerminated } from '../model/backend.ts';
import { inChromium, TestBrowser } from '../test/kit/browser/browser.ts';

const parts = new AsyncDisposableStack();
let api: TestApi;
let browser: TestBrowser;
let folder: string;
/** Serves the built client and a page, and forwards all other requests to the API. */
const front = createServer((incoming, outgoing) => void answer(incoming, outgoing));
let frontUrl: string;

inChromium(() => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-client-page-'));
    parts.defer(() => rm(folder, { recursive: true }));
    await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'build.ts'), join(folder, 'dist')]);
    api = parts.use(await openTestApi());
    await addUser(api, 'ada@example.com', 'acme', 'member');
    await once(front.listen(0, '127.0.0.1'), 'listening');
    parts.defer(() => {
      front.close();
      front.closeAllConnections();
    });
    frontUrl = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
    browser = parts.use(await TestBrowser.open());
  });
  afterAll(async () => await parts.disposeAsync());

  test('connects with the session of a user, and follows statuses across broken connections', async () => {
    await using opened = await browser.newPage();
    const { page } = opened;
    await openPage(page, frontUrl);
    const login = JSON.stringify({ user_email: 'ada@example.com', password });
    const id = await page.evaluate<string>(`berth.logIns.logIn(${login})
      .then(() => berth.connect('acme/draw', { key: 'room-1' }))
      .then(({ backend_id }) => backend_id)`);
    await page.evaluate(`globalThis.seen = [];
      globalThis.following = (async () => {
        for await (const { status } of berth.statuses('${id}')) seen.push(status);
      })();
      globalThis.ready = berth.waitUntilReady('${id}');
      undefined`);
    await page.waitForFunction('seen.length === 1');
    front.closeAllConnections();
    await api.change(id, (current) => advance(assign(current, 'node-1'), 'loading', new Date()));
    await page.waitForFunction("seen.includes('loading')");
    front.closeAllConnections();
    await api.change(id, (current) => becomeServing(current));
    expect(await page.evaluate('ready.then(({ status }) => status)')).toBe('ready');
    await api.change(id, (current) => becomeTerminated(current, { kind: null, reason: null, exitCode: 0 }, new Date()));
    await page.evaluate('following');
    expect(await page.evaluate('seen')).toEqual(['scheduled', 'loading', 'waiting', 'ready', 'terminated']);
  });

  test('waits from a page of another origin, without a token, for a backend that its server has connected to', async () => {
    const { backend_id: id } = (await api.post('/v2/service/acme/draw/connect')).body;
    await using opened = await browser.newPage();
    const { page } = opened;
    await openPage(page, api.base);
    await page.evaluate(`globalThis.ready = berth.waitUntilReady('${id}'); undefined`);
    await api.change(id, becomeServing);
    expect(await page.evaluate('ready.then(({ status }) => status)')).toBe('ready');
    expect(await page.evaluate(`berth.connect('acme/draw').then(() => '', (error) => error.code)`)).toBe('Unreachable');
  });
});

/** Opens a page with a client `berth`. */
async function openPage(page: Page, apiUrl: string): Promise<void> {
  await page.goto(`${frontUrl}/app/page?${new URLSearchParams({ api: apiUrl }).toString()}`);
  await page.waitForFunction('globalThis.berth');
}

const html = `<!doctype html><title>A page</title><script type="module">
import { BerthClient } from './index.js';
const url = new URLSearchParams(location.search).get('api');
globalThis.berth = new BerthClient({ url, retryDelayMs: 1 });
</script>`;

async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const [, file] = /^\/app\/([^?]+)/.exec(incoming.url ?? '') ?? [];
  if (file === 'page') outgoing.setHeader('content-type', 'text/html').end(html);
  else if (file === undefined) forward(incoming, outgoing);
  else {
    outgoing.setHeader('content-type', 'text/javascript');
    outgoing.end(await readFile(join(folder, 'dist', basename(file))));
  }
}

function forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { url = '', method, headers } = incoming;
  const forwarded = request(api.base + url, { method, headers, agent: false }, (response) => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    response.on('error', () => outgoing.destroy()).pipe(outgoing);
  });
  outgoing.once('close', () => forwarded.destroy());
  forwarded.on('error', () => outgoing.destroy());
  incoming.pipe(forwarded);
}
