// Takes about 40 s
/** Certificates from an ACME authority: through Caddy in front, and through an ACME client that writes the files of a platform. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { runCommand } from '../../setup/command.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { freePorts } from '../kit/machine/free-port.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { echo } from '../kit/platform/echo.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import { localLookup } from '../kit/platform/session-client.ts';
import { Fixture } from '../stories/fixture.ts';
import { serialAt } from './serial-at.ts';
import { start, startAuthority } from './acme-authority.ts';
import type { AcmeAuthority } from './acme-authority.ts';
import { acmePrograms } from './acme-programs.ts';
import type { AcmePrograms } from './acme-programs.ts';

const [engine] = testEngines();
const found = await acmePrograms();
const problem = 'missing' in found ? found.missing : engine ? undefined : 'no Docker Engine';
const domain = 'berth.example';
const caddyfile = fileURLToPath(new URL('../../deploy/Caddyfile.one-process', import.meta.url));

describe.skipIf(problem !== undefined)(`ACME${problem === undefined ? '' : ` (skipped: ${problem})`}`, () => {
  const parts = new AsyncDisposableStack();
  const programs = found as AcmePrograms;
  let folder: string;
  let authority: AcmeAuthority;
  let httpPort: number;
  let tlsPort: number;

  beforeAll(async () => {
    if (problem !== undefined) return;
    folder = parts.use(await temporaryFolder()).path;
    [httpPort = 0, tlsPort = 0] = await freePorts(2);
    authority = parts.use(await startAuthority(programs, { folder, httpPort, tlsPort }));
  });
  afterAll(async () => await parts.disposeAsync());

  /** The output of curl, which trusts the authority and resolves the host to this machine. Waits until there is a certificate. */
  async function curl(url: string, ...args: string[]): Promise<string> {
    const { hostname, port } = new URL(url);
    const there = ['--cacert', authority.root, '--resolve', `${hostname}:${port}:127.0.0.1`];
    const patience = ['--retry', '120', '--retry-all-errors', '--retry-delay', '1', '--max-time', '10'];
    return await runCommand('curl', ['--silent', '--show-error', ...there, ...patience, ...args, url]);
  }

  test('Caddy in front of a platform obtains certificates, and sessions, WebSockets, API and registry work behind it', async () => {
    if (engine === undefined) return;
    const [api, registry, proxy] = (await freePorts(3)).map(String) as [string, string, string];
    const own = { BERTH_API_PORT: api, BERTH_REGISTRY_PORT: registry, BERTH_PROXY_PORT: proxy };
    const settings = { BERTH_PROXY_URL: `https://sessions.${domain}:${tlsPort}`, BERTH_BEHIND_LOAD_BALANCER: 'yes' };
    await using fixture = await Fixture.open({ engine, drivers: 'embedded' }, { ...own, ...settings });
    await fixture.pushSample();
    const options = `acme_ca ${authority.directory}\n\tacme_ca_root ${authority.serverCertificate}\n\thttp_port ${httpPort}\n\thttps_port ${tlsPort}`;
    const env = { DOMAIN: domain, CADDY_OPTIONS: options, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
    await using _caddy = start(programs.caddy, ['run', '--config', caddyfile, '--adapter', 'caddyfile'], {
      ...env,
      ...own,
    });
    const session = await fixture.connectReady('pad');
    expect(session.url).toMatch(`https://sessions.${domain}:${tlsPort}/`);
    expect(await curl(session.url, '--http2', '--include')).toMatch(/^HTTP\/2 200/);
    const at = (host: string) => `https://${host}.${domain}:${tlsPort}`;
    expect(await curl(`${at('api')}/v2/nothing`, '--include')).toMatch(/^HTTP\/2 40[14]/);
    expect(await curl(`${at('registry')}/v2/`, '--include')).toMatch(
      /^docker-distribution-api-version: registry\/2\.0/im,
    );
    const ca = await readFile(authority.root);
    const socket = new WebSocket(`${session.url.replace(/^http/, 'ws')}echo`, { lookup: localLookup, ca });
    await once(socket, 'open');
    expect(await echo(socket)).toBe('still here');
    socket.terminate();
    // Caddy sometimes registers twice at its first start, and retries the request that failed for this after a minute.
  }, 240_000);

  test('the platform uses a wildcard certificate of an ACME client, and its renewal', async () => {
    const names = ['--domains', `*.sessions.${domain}`];
    const dns = ['--dns', 'exec', '--dns.disable-cp', '--email', `admin@${domain}`, '--accept-tos'];
    const lego = async (...command: string[]) =>
      await runCommand(
        programs.lego,
        ['--server', authority.directory, '--path', folder, ...names, ...dns, ...command],
        {
          env: { LEGO_CA_CERTIFICATES: authority.serverCertificate, EXEC_PATH: authority.setRecord },
        },
      );
    await lego('run');
    const file = (suffix: string) => join(folder, 'certificates', `_.sessions.${domain}.${suffix}`);
    await using platform = await startPlatform({
      settings: {
        BERTH_TLS_CERTIFICATE_FILES: file('crt'),
        BERTH_TLS_KEY_FILES: file('key'),
        BERTH_SESSION_DOMAIN: `sessions.${domain}`,
      },
    });
    const url = `https://label.sessions.${domain}:${new URL(platform.proxyUrl).port}/`;
    expect(await curl(url, '--include')).toMatch(/^HTTP\/2 404/);
    const first = await serialAt(url);
    await lego('renew', '--days', '9999', '--no-random-sleep');
    await expect.poll(async () => await serialAt(url), { interval: 500 }).not.toBe(first);
  }, 240_000);
});
