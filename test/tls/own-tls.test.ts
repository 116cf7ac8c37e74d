/** A platform that speaks TLS itself: API, registry and sessions, from certificates that are replaced while it runs. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import { request as sendPlain } from 'node:http';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ConnectResponse } from '../../contract/connect.ts';
import { newPair } from '../../core/tls/testing/new-pair.ts';
import { inChromium, TestBrowser } from '../kit/browser/browser.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { nodeImage } from '../kit/engines/node-image.ts';
import { storeAndPull } from '../kit/engines/stored-images.ts';
import { freePorts } from '../kit/machine/free-port.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { api } from '../kit/platform/api-client.ts';
import { echo } from '../kit/platform/echo.ts';
import { localLookup } from '../kit/platform/session-client.ts';
import { Fixture } from '../stories/fixture.ts';
import { serialAt } from './serial-at.ts';

const [engine] = testEngines();
const domain = 'sessions.berth.localhost';
const folder = fileURLToPath(new URL('../stories/ordinary-app', import.meta.url));
const run = promisify(execFile);

describe.skipIf(engine === undefined)(`TLS${engine ? '' : ' (skipped: no Docker Engine)'}`, () => {
  const parts = new AsyncDisposableStack();
  let fixture: Fixture;
  let files: { certificate: string; key: string };
  let httpPort: number;
  let session: ConnectResponse;

  /** Replaces the certificate, as a renewal does, and lets this process trust the new one. */
  async function renew(): Promise<void> {
    const pair = await newPair(['127.0.0.1', domain, `*.${domain}`]);
    setDefaultCACertificates([...getCACertificates('default'), pair.certificate]);
    for (const part of ['key', 'certificate'] as const) {
      await writeFile(`${files[part]}.new`, pair[part], { mode: 0o600 });
      await rename(`${files[part]}.new`, files[part]);
    }
  }

  beforeAll(async () => {
    if (engine === undefined) return;
    const place = parts.use(await temporaryFolder());
    files = { certificate: join(place.path, 'certificate'), key: join(place.path, 'key') };
    await renew();
    [httpPort = 0] = await freePorts(1);
    const settings = {
      BERTH_SESSION_DOMAIN: domain,
      BERTH_TLS_CERTIFICATE_FILES: files.certificate,
      BERTH_TLS_KEY_FILES: files.key,
      BERTH_HTTP_PORT: String(httpPort),
    };
    fixture = parts.use(await Fixture.open({ engine, drivers: 'embedded' }, settings));
    const image = await nodeImage({ tag: 'berth-test/ordinary:latest', folder, packages: ['express', 'ws'] });
    await storeAndPull(engine, fixture.platform, { image, service: 'ordinary' });
    session = await fixture.connectReady('ordinary', { key: 'tls' });
    // A busy machine needs a minute to load the image.
  }, 240_000);
  afterAll(async () => await parts.disposeAsync());

  /** The output of curl, which trusts only the platform's certificate. */
  async function curl(...args: string[]): Promise<string> {
    const { hostname, port } = new URL(session.url);
    const resolve = ['--resolve', `${hostname}:${port}:127.0.0.1`];
    const { stdout } = await run('curl', [
      '--silent',
      '--show-error',
      '--cacert',
      files.certificate,
      ...resolve,
      ...args,
    ]);
    return stdout;
  }

  test('docker pushes an image, which is pulled and run, and all URLs have https', async () => {
    const { apiUrl, proxyUrl } = fixture.platform;
    // A small image, because docker compresses it.
    await fixture.pushWithDocker('serve');
    expect((await fetch((await fixture.connectReady('serve', { url_form: 'path' })).url)).status).toBe(200);
    expect([apiUrl, proxyUrl, session.url].map((url) => new URL(url).protocol)).toEqual(['https:', 'https:', 'https:']);
    expect(await curl(`${apiUrl}/v2/nothing`)).toContain('NotFound');
    const challenge = await curl('--include', `https://${fixture.platform.registry}/v2/`);
    expect(challenge).toMatch(/www-authenticate: bearer realm="https:/i);
    expect((await api(fixture.platform, '/v2/nothing')).status).toBe(404);
  });

  test.each(['--http2', '--http1.1'])('a session answers curl %s', async (version) => {
    const answer = await curl(version, '--include', `${session.url}who`);
    expect(answer).toMatch(version === '--http2' ? /^HTTP\/2 200/ : /^HTTP\/1\.1 200/);
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ backend: session.backend_id });
    const login = await curl(version, '--include', '--data', 'a=b', `${session.url}login`);
    expect(login).toMatch(/^location: \/\r$/im);
  });

  test('browsers are redirected from HTTP to the session, and its WebSockets are encrypted', async () => {
    const { host } = new URL(session.url);
    const request = sendPlain({ host: '127.0.0.1', port: httpPort, path: '/who', headers: { host } }).end();
    const [{ statusCode, headers }] = (await once(request, 'response')) as [
      { statusCode: number; headers: Record<string, string> },
    ];
    request.destroy();
    expect([statusCode, headers['location']]).toEqual([308, `${session.url}who`]);
    const socket = new WebSocket(`${session.url.replace(/^http/, 'ws')}live`, { lookup: localLookup });
    await once(socket, 'message');
    expect(await echo(socket)).toBe('still here');
    socket.close();
    await once(socket, 'close');
  });

  inChromium(() => {
    test('a browser loads the page of a session with HTTP/2, and its WebSocket works', async () => {
      await using browser = await TestBrowser.open();
      await using tab = await browser.newPage({ acceptsAnyCertificate: true });
      await tab.page.goto(session.url);
      await tab.page.getByText('live').waitFor();
      const protocol = await tab.page.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol");
      expect([protocol, tab.problems]).toEqual(['h2', []]);
    });
  });

  test('every listener uses a renewed certificate, and open connections continue', async () => {
    const { apiUrl, proxyUrl, registry } = fixture.platform;
    const urls = [apiUrl, proxyUrl, `https://${registry}`];
    const before = await serialAt(apiUrl);
    const socket = new WebSocket(`${session.url.replace(/^http/, 'ws')}live`, { lookup: localLookup });
    await once(socket, 'message');
    await renew();
    const used = async () => await Promise.all(urls.map(serialAt));
    await expect.poll(async () => (await used()).includes(before), { interval: 200 }).toBe(false);
    expect(new Set(await used()).size).toBe(1);
    expect(await echo(socket)).toBe('still here');
    socket.terminate();
    expect(await curl('--http2', `${session.url}who`)).toContain(session.backend_id);
    const metrics = await (await fetch(`${fixture.platform.operationsUrl}/metrics`)).text();
    expect(metrics).toMatch(/^berth_tls_certificate_files_ok\{.*\} 1$/m);
  });
});
