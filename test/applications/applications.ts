/** Ordinary applications, and how each is used in a browser. */
import { expect } from 'vitest';
import type { Application } from './application.ts';
import { developmentServers } from './development-servers.ts';
import { inPage, untilIs } from './in-page.ts';

/** A large page on a busy machine. */
const slowly = { timeout: 90_000 };

export const applications: readonly Application[] = [
  {
    name: 'nginx',
    title: 'nginx of Debian',
    base: 'debian',
    used: 'a page, and its style sheet at an absolute path',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('h1').innerText()).toBe('Served by nginx');
      const colour = async () => await inPage(page, 'getComputedStyle(document.querySelector("h1")).color');
      await untilIs(colour, 'rgb(1, 2, 3)');
      // nginx redirects to the folder's path with a slash, on the port on which it listens.
      await page.goto(new URL('notes', url).href);
      expect(await page.locator('h1').innerText()).toBe('A folder');
    },
  },
  {
    name: 'nginx-unprivileged',
    title: 'nginx that starts without root',
    base: 'debian',
    worksByPath: true,
    used: 'a page, and a link in it',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('h1').innerText()).toBe('Without root');
      await page.getByText('Note').click();
      expect(await page.locator('body').innerText()).toContain('A note');
    },
  },
  {
    name: 'http-server',
    title: '`python3 -m http.server`',
    base: 'debian',
    worksByPath: true,
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
    base: 'node',
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
    base: 'node',
    worksByPath: true,
    used: 'what one client shares arrives at another over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('body').innerText()).toBe('okay');
      // The awareness of a client, `{}`, as the protocol of Yjs encodes it.
      const awareness = [1, 6, 1, 7, 1, 2, 0x7b, 0x7d];
      expect(await inPage(page, `passOn('room-' + Math.random(), ${JSON.stringify(awareness)})`)).toEqual(awareness);
    },
  },
  {
    name: 'hocuspocus',
    title: 'a hocuspocus server',
    base: 'node',
    worksByPath: true,
    used: 'its page, and the log-in to a document over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('body').innerText()).toContain('Hocuspocus');
      // The document "room", the type of an authentication message, an empty token.
      const login = [4, ...Buffer.from('room'), 2, 0, 0];
      expect(await inPage(page, `ask('', ${JSON.stringify(login)})`)).toContain('read-write');
    },
  },
  {
    name: 'entrypoint',
    title: 'an entrypoint that starts as root, and a server on localhost',
    base: 'debian',
    worksByPath: true,
    used: 'a page that the other user writes and counts',
    use: async ({ page }, url) => {
      await page.goto(url);
      expect(await page.locator('body').innerText()).toMatch(/^service has counted \d$/);
    },
  },
  {
    name: 'node-red',
    title: 'Node-RED',
    base: 'node',
    worksByPath: true,
    used: 'the editor, and flows that are deployed',
    // The catalogue of nodes that can be installed.
    loadsFrom: ['https://catalogue.nodered.org'],
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.locator('#red-ui-header-button-deploy').waitFor(slowly);
      const flows = "fetch('flows', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '[]' })";
      expect(await inPage(page, `${flows}.then(({ status }) => status)`)).toBe(204);
    },
  },
  {
    name: 'redis-commander',
    title: 'Redis Commander',
    base: 'node',
    worksByPath: true,
    used: 'the tree of keys, and commands',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByRole('treeitem', { name: 'local (localhost:6379:0)' }).click(slowly);
      expect(await inPage(page, "askRedis('set ship Erebus')")).toBe('OK');
      expect(await inPage(page, "askRedis('get ship')")).toBe('Erebus');
    },
  },
  {
    name: 'streamlit',
    title: 'Streamlit',
    base: 'python',
    worksByPath: true,
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
    base: 'python',
    used: 'its page, and a kernel that computes over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByText('Python 3 (ipykernel)').first().waitFor(slowly);
      expect(await inPage(page, "computeInKernel('6 * 7')")).toBe('42');
    },
  },
  {
    name: 'jupyter-port',
    title: 'JupyterLab on `$PORT`',
    base: 'python',
    used: 'the redirect to its page, and a kernel that computes over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url, { ...slowly, waitUntil: 'domcontentloaded' });
      expect(new URL(page.url()).pathname).toBe('/lab');
      expect(await inPage(page, "computeInKernel('6 * 7')")).toBe('42');
    },
  },
  {
    name: 'gradio',
    title: 'Gradio, which listens on localhost',
    base: 'python',
    used: 'its page, and a form whose answer comes as a stream of events',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByLabel('Your name').fill('Ada', slowly);
      await page.getByRole('button', { name: 'Submit' }).click();
      await untilIs(async () => await page.getByLabel('output').inputValue(), 'Hello Ada!');
    },
  },
  {
    name: 'datasette',
    title: 'Datasette',
    base: 'python',
    used: 'a table, and a query that a form sends',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByRole('link', { name: 'ships', exact: true }).first().click();
      await page.goto(`${url}ships?sql=select+upper(name)+from+ships`);
      await page.getByText('EREBUS').waitFor();
    },
  },
  {
    name: 'marimo',
    title: 'marimo, which listens on localhost',
    base: 'python',
    used: 'a notebook, and a field whose answer comes over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByRole('textbox').first().fill('Ada', slowly);
      await page.keyboard.press('Enter');
      await page.getByText('Hello Ada!').waitFor(slowly);
    },
  },
  {
    name: 'panel',
    title: 'Panel, which runs on Bokeh',
    base: 'python',
    used: 'its page, and a field whose answer comes over the WebSocket',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      await page.getByRole('textbox').first().fill('Ada', slowly);
      await page.keyboard.press('Enter');
      await page.getByText('Hello Ada!').waitFor(slowly);
    },
  },
  ...developmentServers,
  {
    name: 'desktop',
    title: 'a desktop: TigerVNC with twm, and noVNC',
    base: 'python',
    worksByPath: true,
    used: 'a terminal of the desktop, in which a person types',
    use: async ({ page }, url) => {
      await page.goto(url, slowly);
      // Not the middle, where the pointer is at first.
      const colour = async () => await inPage(page, 'colourOfCanvas(200, 150)');
      await untilIs(colour, '16,32,48');
      const canvas = page.locator('canvas').first();
      await canvas.click({ position: { x: 100, y: 100 } });
      await page.keyboard.type('Ada');
      await page.keyboard.press('Enter');
      await untilIs(colour, '0,255,0');
      await page.keyboard.press('Enter');
      await untilIs(colour, '16,32,48');
    },
  },
];
