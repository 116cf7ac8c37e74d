/** Ordinary applications, and how each is used in a browser. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Application } from './application.ts';
import { packagesOf } from './packages.ts';

/** A large page on a busy machine. */
const slowly = { timeout: 90_000 };

export const applications: readonly Application[] = [
  {
    name: 'nginx',
    title: 'nginx of Debian',
    used: 'a page, and its style sheet at an absolute path',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('h1').innerText()).toBe('Served by nginx');
      const colour = async () => await inPage(page, 'getComputedStyle(document.querySelector("h1")).color');
      await expect.poll(colour).toBe('rgb(1, 2, 3)');
    },
  },
  {
    name: 'http-server',
    title: '`python3 -m http.server`',
    used: 'the list of files, and a link in it',
    use: async ({ page }, url) => {
      await page.goto(url);
      await page.getByText('note.txt').click();
      expect(await page.locator('body').innerText()).toContain('A note in a folder');
    },
  },
  {
    name: 'socket.io',
    title: 'Express with socket.io',
    packages: packagesOf['socket.io'],
    used: 'a script at an absolute path, a form with a redirect, messages over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url);
      await page.getByText('websocket').waitFor();
      await inPage(page, 'socket.emit("say", "by socket") && 0');
      await page.getByText('by socket').waitFor();
      const other = await page.context().newPage();
      await other.goto(url);
      await other.getByText('websocket').waitFor();
      await page.locator('input').fill('by form');
      await page.locator('button').click();
      await other.getByText('by form').waitFor();
      await page.waitForURL(url);
    },
  },
  {
    name: 'y-websocket',
    title: 'the server of y-websocket 1.5',
    packages: packagesOf['y-websocket'],
    used: 'what one client shares arrives at another over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('body').innerText()).toBe('okay');
      // The awareness of a client, `{}`, as the protocol of Yjs encodes it.
      const awareness = [1, 6, 1, 7, 1, 2, 0x7b, 0x7d];
      expect(await inPage(page, `passOn('/room', ${JSON.stringify(awareness)})`)).toEqual(awareness);
    },
  },
  {
    name: 'hocuspocus',
    title: 'a hocuspocus server',
    packages: packagesOf.hocuspocus,
    used: 'its page, and the log-in to a document over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('body').innerText()).toContain('Hocuspocus');
      // The document "room", a message about authentication, an empty token.
      const login = [4, ...Buffer.from('room'), 2, 0, 0];
      expect(await inPage(page, `ask('/', ${JSON.stringify(login)})`)).toContain('read-write');
    },
  },
  {
    name: 'entrypoint',
    title: 'an entrypoint that starts as root, and a server on localhost',
    used: 'a page that the other user writes and counts',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('body').innerText()).toMatch(/^service has counted \d$/);
    },
  },
  {
    name: 'node-red',
    title: 'Node-RED',
    packages: packagesOf['node-red'],
    used: 'the editor, and flows that are deployed',
    // Its list of nodes to install.
    loadsFrom: ['https://catalogue.nodered.org'],
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.locator('#red-ui-header-button-deploy').waitFor(slowly);
      const flows = "fetch('/flows', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '[]' })";
      expect(await inPage(page, `${flows}.then(({ status }) => status)`)).toBe(204);
    },
  },
  {
    name: 'streamlit',
    title: 'Streamlit',
    packages: packagesOf.streamlit,
    used: 'its page, and a field whose answer comes over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByLabel('Your name').fill('Ada', slowly);
      await page.getByLabel('Your name').press('Enter');
      await page.getByText('Hello Ada!').waitFor(slowly);
    },
  },
  {
    name: 'jupyter',
    title: 'JupyterLab',
    packages: packagesOf.jupyter,
    used: 'its page, and a kernel that computes over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByText('Python 3 (ipykernel)').first().waitFor(slowly);
      expect(await inPage(page, "computeInKernel('6 * 7')")).toBe('42');
    },
  },
];

/** Evaluates an expression in a page, which can use the functions of `in-page.js`. */
async function inPage(page: Page, expression: string): Promise<unknown> {
  const module = await readFile(join(import.meta.dirname, 'in-page.js'), 'utf8');
  const functions = module.replaceAll(/^export /gm, '');
  return await page.evaluate(`(async () => { ${functions}\nreturn await (${expression}); })()`);
}
