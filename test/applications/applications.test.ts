// Takes about 120 s
/** Ordinary applications run unmodified: each is built, pushed, connected to, and used in Chromium. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { Semaphore } from '../../core/async/semaphore.ts';
import { inChromium, TestBrowser } from '../kit/browser/browser.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { api, waitFor } from '../kit/platform/api-client.ts';
import { Fixture } from '../stories/fixture.ts';
import type { Application, Base } from './application.ts';
import { applications } from './applications.ts';
import { hasPackages, provideBase } from './bases.ts';
import { EngineRegistry } from './engine-registry.ts';
import { withTable } from './table.ts';
import type { Tried } from './table.ts';

const [engine] = testEngines();

/** All applications together, on a busy machine. */
const timeoutMs = 600_000;

/** Long, because all applications start at the same time. */
const startTimeoutMs = 120_000;

/** Limits, because a page and an application that starts each keep a core busy. */
const maxPages = 3;
const maxBuilds = 2;

const isMissing = engine === undefined || !(await hasPackages());

describe.skipIf(isMissing)(`applications${isMissing ? ' (skipped: their packages are not installed)' : ''}`, () => {
  inChromium(() => {
    const parts = new AsyncDisposableStack();
    const tried: Tried[] = [];
    const sessions = new Map<string, Promise<ConnectResponse>>();
    const pages = new Semaphore(maxPages);
    let fixture: Fixture;
    let browser: TestBrowser;

    beforeAll(async () => {
      if (engine === undefined) return;
      const folder = await mkdtemp(join(tmpdir(), 'berth-applications-'));
      parts.defer(() => rm(folder, { recursive: true, force: true }));
      browser = parts.use(await TestBrowser.open());
      fixture = parts.use(await Fixture.open({ engine, drivers: 'embedded' }, { BERTH_SESSION_DOMAIN: 'localhost' }));
      await prepare(engine, folder);
    }, timeoutMs);
    afterAll(async () => {
      await Promise.allSettled(sessions.values());
      await parts.disposeAsync();
    });

    /** Starts to build, push and start all applications, while tests use the ready ones. */
    async function prepare(on: TestEngine, folder: string): Promise<void> {
      const registry = await EngineRegistry.open(on, fixture.platform, folder);
      // Each base image has the layers of the base image for which it waits.
      const debian = provideBase(registry, 'debian');
      const python = debian.then(async () => await provideBase(registry, 'python'));
      const node = debian.then(async () => await provideBase(registry, 'node'));
      const frontend = node.then(async () => await provideBase(registry, 'frontend'));
      const provided: Readonly<Record<Base, Promise<void>>> = { debian, node, frontend, python };
      const builds = new Semaphore(maxBuilds);
      for (const application of applications) {
        const session = (async () => {
          await provided[application.base];
          using _build = await builds.acquire();
          await registry.buildAndPush(join(import.meta.dirname, application.name), application.name);
          return await start(application);
        })();
        // The test of the application reports the error; others may succeed.
        session.catch(() => {});
        sessions.set(application.name, session);
      }
    }

    async function start({ name, settings }: Application): Promise<ConnectResponse> {
      if (settings) {
        const path = `/v2/service/${fixture.platform.account}/${name}/settings`;
        expect((await api(fixture.platform, path, { method: 'POST', body: JSON.stringify(settings) })).status).toBe(
          200,
        );
      }
      return await fixture.connect(name, { key: 'tried' });
    }

    /** The session of an application by path. */
    async function byPath(name: string): Promise<ConnectResponse> {
      return await fixture.connectReady(name, { key: 'tried', url_form: 'path' });
    }

    async function use({ use: useApplication, loadsFrom = [] }: Application, session: ConnectResponse): Promise<void> {
      using _page = await pages.acquire();
      await using opened = await browser.newPage();
      const inContainer = async (script: string) =>
        await fixture.docker('exec', await fixture.containerOf(session), 'sh', '-c', script);
      await useApplication(opened, session.url, inContainer).catch((error: unknown) => {
        const { problems, requested } = opened;
        const found = JSON.stringify({ problems, requested: requested.slice(-40) }, undefined, 1);
        throw new Error(`The browser reported ${found}`, { cause: error });
      });
      expect(opened.requestsOutside(new URL(session.url).origin, ...loadsFrom)).toEqual([]);
    }

    test.concurrent.each(applications.map((application) => [application.name, application] as const))(
      '%s',
      async (name, application) => {
        const session = await sessions.get(name)!;
        const ready = await waitFor(fixture.platform, session.backend_id, 'ready', startTimeoutMs);
        expect(ready.status).toBe('ready');
        await use(application, session);
        if (application.worksByPath) await use(application, await byPath(name));
        tried.push({ application, forms: formsOf(application), works: true });
        if (!reused.has(name)) await fixture.terminate(session, true);
      },
      timeoutMs,
    );

    /** Applications that other tests use. */
    const reused = new Set(['nginx']);

    test('a redirect of nginx to its own port stays in the session, also by path', async () => {
      const { url } = await byPath('nginx');
      const answer = await fetch(`${url}notes`, { redirect: 'manual' });
      expect([answer.status, answer.headers.get('location')]).toEqual([301, `${new URL(url).pathname}notes/`]);
      await using opened = await browser.newPage();
      await opened.page.goto(`${url}notes`);
      expect(await opened.page.locator('h1').innerText()).toBe('A folder');
      expect(opened.page.url()).toBe(`${url}notes/`);
    });

    test(
      'a package manager works in a container: it starts as root and downloads as another user',
      async () => {
        const session = await fixture.connectReady('nginx', { key: 'tried' });
        const container = await fixture.containerOf(session);
        const list = '/tmp/sources.list';
        const repository = `mkdir /repository && touch /repository/Packages && echo 'deb [trusted=yes] file:/repository ./' > ${list}`;
        const update = `apt-get update -o Dir::Etc::sourcelist=${list} -o Dir::Etc::sourceparts=-`;
        const output = await fixture.docker(
          'exec',
          container,
          'sh',
          '-c',
          `${repository} && ${update} 2>&1 && useradd ada`,
        );
        expect(output).not.toMatch(/^[WE]: /m);
      },
      timeoutMs,
    );

    test('docs/applications.md contains the results', async () => {
      const page = fileURLToPath(new URL('../../docs/applications.md', import.meta.url));
      const works = (application: Application) => tried.some((each) => each.application === application);
      const all = applications.map((application): Tried => {
        return { application, forms: formsOf(application), works: works(application) };
      });
      await expect(await withTable(page, all)).toMatchFileSnapshot(page);
    });
  });
});

function formsOf({ worksByPath = false }: Application): Tried['forms'] {
  return worksByPath ? ['host', 'path'] : ['host'];
}
