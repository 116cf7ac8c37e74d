import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { newPair } from '../../../core/tls/testing/new-pair.ts';
import { runCommand } from '../../../setup/command.ts';
import { openTerminal } from '../../../setup/terminal.ts';
import type { Terminal } from '../../../setup/terminal.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import type { TemporaryFolder } from '../machine/temporary-folder.ts';
import { AptPackages } from '../packages/apt-packages.ts';
import type { InstallPolicy } from '../packages/apt-packages.ts';
import { downloadMongod, mongodProgram } from './mongod.ts';
import { installSharedServers } from './shared-servers.ts';

/** The variables with which the library would use a proxy. */
const proxyVariables = ['https_proxy', 'http_proxy', 'HTTPS_PROXY', 'HTTP_PROXY', 'npm_config_proxy'];

/** Before the tests change the PATH. */
const pair = await newPair(['127.0.0.1']);

let folder: TemporaryFolder;
let mirror: Server;
let requests: string[];
let answer: RequestListener;
let printed: string[];
let terminal: Terminal;

beforeEach(async () => {
  folder = await temporaryFolder();
  requests = [];
  mirror = createServer((request, response) => {
    requests.push(request.url ?? '');
    answer(request, response);
  });
  await once(mirror.listen(0, '127.0.0.1'), 'listening');
  for (const name of [...proxyVariables, 'MONGODB_URL']) vi.stubEnv(name, undefined);
  vi.stubEnv('MONGOMS_USE_HTTP', 'true');
  vi.stubEnv('MONGOMS_DOWNLOAD_MIRROR', `http://127.0.0.1:${(mirror.address() as AddressInfo).port}`);
  vi.stubEnv('XDG_CACHE_HOME', folder.path);
  vi.stubEnv('PATH', join(folder.path, 'programs'));
  printed = [];
  terminal = {
    ...openTerminal(process.stderr),
    print: (text) => printed.push(text),
    withProgress: async (what, work) => {
      printed.push(`${what} …`);
      return await work(() => {});
    },
  };
});
afterEach(async () => {
  vi.unstubAllEnvs();
  mirror.closeAllConnections();
  await once(mirror.close(), 'close');
  await folder[Symbol.asyncDispose]();
});

describe('a mongod', () => {
  test('is downloaded once, and runs', async () => {
    answer = await serving('#!/bin/sh\necho "db version v8"\n');
    expect(await mongodProgram()).toBeUndefined();
    expect(await downloadMongod(terminal)).toBeUndefined();
    const program = (await mongodProgram()) ?? '';
    expect(program.startsWith(folder.path)).toBe(true);
    expect(await runCommand(program, ['--version'])).toBe('db version v8\n');
    expect(requests).toEqual([expect.stringMatching(/\.tgz$/), expect.stringMatching(/\.tgz\.md5$/)]);
    expect(await downloadMongod(terminal)).toBeUndefined();
    expect(requests).toHaveLength(2);
  });

  test.each<{ name: string; listener: () => Promise<RequestListener>; maxSilenceMs?: number; reason: RegExp }>([
    { name: 'lacks it', listener: async () => (_, response) => void response.writeHead(404).end(), reason: /404/ },
    { name: 'fails', listener: async () => (_, response) => void response.writeHead(503).end(), reason: /503/ },
    { name: 'hangs up', listener: async () => (request) => void request.destroy(), reason: /ECONNRESET/ },
    { name: 'never answers', listener: async () => () => {}, maxSilenceMs: 50, reason: /ETIMEDOUT/ },
    {
      name: 'stops in the middle',
      listener: async () => (_, response) => void response.writeHead(200, { 'content-length': 2 }).write('x'),
      maxSilenceMs: 50,
      reason: /aborted|ECONNRESET/,
    },
    {
      name: 'has another checksum for it',
      listener: async () => await serving('#!/bin/sh\n', 'd41d8cd98f00b204e9800998ecf8427e'),
      reason: /MD5 check failed/,
    },
    {
      name: 'has one that does not run here',
      listener: async () => await serving('#!/bin/sh\necho "no libcurl" >&2\nexit 127\n'),
      reason: /no libcurl/,
    },
  ])('is not used if the server $name', async ({ listener, maxSilenceMs, reason }) => {
    answer = await listener();
    expect(await downloadMongod(terminal, maxSilenceMs)).toMatch(reason);
    expect(requests.filter((url) => url.endsWith('.tgz'))).toHaveLength(1);
    expect(await mongodProgram()).toBeUndefined();
    expect(await readdir(join(folder.path, 'berth-tests'))).toEqual([]);
  });

  test('is not used if the certificate of the server is not valid', async () => {
    await using server = createSecureServer({ cert: pair.certificate, key: pair.key }, await serving('#!/bin/sh\n'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    vi.stubEnv('MONGOMS_USE_HTTP', 'false');
    vi.stubEnv('MONGOMS_DOWNLOAD_MIRROR', `https://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(await downloadMongod(terminal)).toMatch(/: DEPTH_ZERO_SELF_SIGNED_CERT$/);
  });

  test('is not used if there is no network', async () => {
    vi.stubEnv('MONGOMS_DOWNLOAD_MIRROR', 'http://127.0.0.1:1');
    expect(await downloadMongod(terminal)).toMatch(/^http:\/\/127\.0\.0\.1:1\/\S+\.tgz: ECONNREFUSED$/);
  });
});

describe('the installation of servers', () => {
  beforeEach(() => {
    vi.stubEnv('REDIS_URL', 'redis://127.0.0.1:6379');
    answer = (_, response) => void response.writeHead(404).end();
  });

  const install = async (policy: InstallPolicy) => await installSharedServers(new AptPackages(terminal, policy));

  test('downloads MongoDB instead of installing Java', async () => {
    answer = await serving('#!/bin/sh\n');
    expect(await install('yes')).toBeUndefined();
    expect(printed).toEqual([expect.stringMatching(/^Downloading MongoDB \S+ …$/)]);
  });

  test('prints why MongoDB cannot be downloaded, and does not repeat the attempt', async () => {
    // No apt-get is on this PATH.
    expect(await install('yes')).toMatch(/^these packages are missing: default-jdk-headless, maven$/);
    expect(printed).toEqual([
      expect.stringMatching(/^Downloading MongoDB/),
      expect.stringMatching(
        /^MongoDB cannot be downloaded, so tests use a server with its protocol: \S+: Status: 404$/,
      ),
    ]);
    expect(await install('no')).toMatch(/^these packages are missing/);
    expect(requests).toHaveLength(1);
  });

  test('downloads nothing if no packages may be installed', async () => {
    await install('no');
    expect(requests).toEqual([]);
  });

  test('downloads nothing if there is a server', async () => {
    vi.stubEnv('MONGODB_URL', 'mongodb://127.0.0.1:27017');
    expect(await install('yes')).toBeUndefined();
    expect(requests).toEqual([]);
  });
});

/** Answers with an archive that contains a mongod, and with its checksum. */
async function serving(program: string, checksum?: string): Promise<RequestListener> {
  const archive = pack();
  archive.entry({ name: 'mongodb/bin/mongod', mode: 0o755 }, program);
  archive.finalize();
  const bytes = gzipSync(await buffer(archive));
  const md5 = checksum ?? createHash('md5').update(bytes).digest('hex');
  return (request, response) => void response.end(request.url?.endsWith('.md5') ? `${md5}  mongodb.tgz\n` : bytes);
}
