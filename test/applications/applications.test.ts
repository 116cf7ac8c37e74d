// Takes about 250 s
/** Ordinary applications run unmodified: each is built, pushed, connected to, and used in Chromium. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pushLoaded } from '../../setup/push-image.ts';
import { inChromium, TestBrowser } from '../kit/browser/browser.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { api } from '../kit/platform/api-client.ts';
import { Fixture } from '../stories/fixture.ts';
import type { Application, Base } from './application.ts';
import { applications } from './applications.ts';
import { buildApplication, ensureBase, hasPackages } from './images.ts';
import { withTable } from './table.ts';
import type { Tried } from './table.ts';

const [engine] = testEngines();

/** JupyterLab takes longest: its image is large, and so is its page. */
const timeoutMs = 300_000;

const isMissing = engine === undefined || !(await hasPackages());

describe.skipIf(isMissing)(`applications${isMissing ? ' (skipped: their packages are not installed)' : ''}`, () => {
  inChromium(() => {
    const parts = new AsyncDisposableStack();
    const tried: Tried[] = [];
    const prepared = new Map<string, Promise<void>>();
    let fixture: Fixture;
    let browser: TestBrowser;
    let folder: string;

    beforeAll(async () => {
      if (engine === undefined) return;
      folder = await mkdtemp(join(tmpdir(), 'berth-applications-'));
      parts.defer(() => rm(folder, { recursive: true, force: true }));
      browser = parts.use(await TestBrowser.open());
      fixture = parts.use(await Fixture.open({ engine, drivers: 'embedded' }, { BERTH_SESSION_DOMAIN: 'localhost' }));
      await writeFile(join(folder, 'token'), fixture.platform.token, { mode: 0o600 });
      prepare(engine);
    }, timeoutMs);
    afterAll(async () => {
      await Promise.allSettled(prepared.values());
      await parts.disposeAsync();
    });

    /** Begins to build and push all images, while tests use those that are there. Images that share a layer push it once, so one waits for another. */
    function prepare(on: TestEngine): void {
      const debian = ensureBase(on, 'debian');
      const queues: Record<Base, Promise<unknown>> = {
        debian,
        node: debian.then(() => ensureBase(on, 'node')),
        python: debian.then(() => ensureBase(on, 'python')),
      };
      for (const application of applications) {
        const { name, base } = application;
        const done = queues[base].then(async () => await push(application, await buildApplication(on, application)));
        prepared.set(name, done);
        // The test of the application reports it, and others may succeed.
        queues[base] = done.catch(() => {});
      }
    }

    async function push({ name }: Application, tag: string): Promise<void> {
      const { account, registry } = fixture.platform;
      const target = `${registry}/${account}/${name}:latest`;
      const about = { dockerHost: engine?.host ?? '', target, account, tokenFile: join(folder, 'token') };
      await pushLoaded(tag, about, await mkdtemp(join(folder, 'docker-')));
    }

    async function use({ use: tryOut, loadsFrom = [] }: Application, url: string): Promise<void> {
      await using opened = await browser.newPage();
      await tryOut(opened, url).catch((error: unknown) => {
        const { problems, requested } = opened;
        const found = JSON.stringify({ problems, requested }, undefined, 1);
        throw new Error(`The browser reported ${found}`, { cause: error });
      });
      expect(opened.requestedBeside(new URL(url).origin, ...loadsFrom)).toEqual([]);
    }

    test.each(applications.map((application) => [application.name, application] as const))(
      '%s',
      async (name, application) => {
        await prepared.get(name);
        if (application.settings) {
          const path = `/v2/service/${fixture.platform.account}/${name}/settings`;
          const body = JSON.stringify(application.settings);
          expect((await api(fixture.platform, path, { method: 'POST', body })).status).toBe(200);
        }
        const session = await fixture.connectReady(name, { key: 'tried' });
        await use(application, session.url);
        if (application.worksByPath) {
          await use(application, (await fixture.connectReady(name, { key: 'tried', url_form: 'path' })).url);
        }
        tried.push({ application, forms: formsOf(application), works: true });
        await fixture.terminate(session, true);
      },
      timeoutMs,
    );

    test(
      'a package manager works inside, which starts as root and downloads as another user',
      async () => {
        const session = await fixture.connectReady('nginx', { key: 'packages' });
        const container = await fixture.containerOf(session);
        const list = '/tmp/sources.list';
        const repository = `mkdir /repository && touch /repository/Packages && echo 'deb [trusted=yes] file:/repository ./' > ${list}`;
        const update = `apt-get update -o Dir::Etc::sourcelist=${list} -o Dir::Etc::sourceparts=-`;
        const said = await fixture.docker(
          'exec',
          container,
          'sh',
          '-c',
          `${repository} && ${update} 2>&1 && useradd ada`,
        );
        expect(said).not.toMatch(/^[WE]: /m);
        await fixture.terminate(session, true);
      },
      timeoutMs,
    );

    test('the documentation says so', async () => {
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
