// Takes about 200 s
/** Ordinary applications run unmodified: each is built, pushed, connected to, and used in Chromium. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pushLoaded } from '../../setup/push-image.ts';
import { inChromium, TestBrowser } from '../kit/browser/browser.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { debianRoot, packagesFolder } from '../kit/packages/application-packages.ts';
import { api } from '../kit/platform/api-client.ts';
import { Fixture } from '../stories/fixture.ts';
import type { Application } from './application.ts';
import { applications } from './applications.ts';
import { buildApplication } from './images.ts';
import { withTable } from './table.ts';
import type { Tried } from './table.ts';

const [engine] = testEngines();

/** JupyterLab takes longest: its image is large, and so is its page. */
const timeoutMs = 300_000;

async function isInstalled({ packages }: Application): Promise<boolean> {
  return packages === undefined || (await packagesFolder(packages)) !== undefined;
}

const installed = await Promise.all([debianRoot(), ...applications.map(isInstalled)]);
const isMissing = engine === undefined || installed.some((each) => each === undefined || each === false);

describe.skipIf(isMissing)(`applications${isMissing ? ' (skipped: their packages are not installed)' : ''}`, () => {
  inChromium(() => {
    const parts = new AsyncDisposableStack();
    const tried: Tried[] = [];
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
    }, timeoutMs);
    afterAll(async () => await parts.disposeAsync());

    async function push({ name }: Application, tag: string): Promise<void> {
      const { account, registry } = fixture.platform;
      const target = `${registry}/${account}/${name}:latest`;
      const about = { dockerHost: engine?.host ?? '', target, account, tokenFile: join(folder, 'token') };
      await pushLoaded(tag, about, await mkdtemp(join(folder, 'docker-')));
    }

    test.each(applications.map((application) => [application.name, application] as const))(
      '%s',
      async (name, application) => {
        if (engine === undefined) return;
        await push(application, await buildApplication(engine, application));
        if (application.settings) {
          const path = `/v2/service/${fixture.platform.account}/${name}/settings`;
          const body = JSON.stringify(application.settings);
          expect((await api(fixture.platform, path, { method: 'POST', body })).status).toBe(200);
        }
        const session = await fixture.connectReady(name, { key: 'tried' });
        await using opened = await browser.newPage();
        await application.use(opened, session.url).catch((error: unknown) => {
          const { problems, requested } = opened;
          throw new Error(`The browser reported ${JSON.stringify({ problems, requested }, undefined, 1)}`, {
            cause: error,
          });
        });
        const others = application.loadsFrom ?? [];
        expect(opened.requestedBeside(new URL(session.url).origin, ...others)).toEqual([]);
        tried.push({ application, form: 'host', works: true });
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
      const all = applications.map((application): Tried => ({ application, form: 'host', works: works(application) }));
      await expect(await withTable(page, all)).toMatchFileSnapshot(page);
    });
  });
});
