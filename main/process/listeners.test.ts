import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { SecureContexts } from '../../core/tls/secure-contexts.ts';
import { newPair } from '../../core/tls/testing/new-pair.ts';
import { testEngines } from '../../test/kit/engines/engines.ts';
import { startPlatform } from '../../test/kit/platform/platform.ts';
import { loadConfig } from '../config/config.ts';
import { openListener } from './listener.ts';
import { openListeners, addressOf, urlsOf } from './listeners.ts';
import { listenProblem } from './listen-problem.ts';
import { allRoles } from '../config/roles.ts';

const [engine] = testEngines();

const allFree = {
  BERTH_API_PORT: '0',
  BERTH_REGISTRY_PORT: '0',
  BERTH_PROXY_PORT: '0',
  BERTH_OPERATIONS_PORT: '0',
};

/** The error with which listeners of these settings fail to open. */
async function problemWith(environment: Readonly<Record<string, string>>): Promise<unknown> {
  await using opening = new AsyncDisposableStack();
  const config = loadConfig({ ...allFree, ...environment });
  const listening = async () => {
    await openListeners({ config, roles: allRoles }, opening);
    // The proxy opens its listener itself.
    opening.use(await openListener(addressOf(config, 'host', 'proxyPort')));
  };
  return await listening().catch((error: unknown) => error);
}

test.each(['BERTH_API_PORT', 'BERTH_REGISTRY_PORT', 'BERTH_PROXY_PORT', 'BERTH_OPERATIONS_PORT'])(
  'the error about a port in use names %s, and the process that listens there',
  async (variable) => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    const problem = await problemWith({ [variable]: `${port}` });
    holder.close();
    expect(problem).toMatchObject({
      name: 'ConfigError',
      message: expect.stringMatching(
        new RegExp(
          `^${variable}: port ${port} of 127.0.0.1 is in use by process ${process.pid} \\(.+\\): stop that process, or`,
        ),
      ) as string,
    });
  },
);

test('the process that uses a port is found among others, on any address', async () => {
  const script = "const s = require('net').createServer().listen(0, '::', () => console.log(s.address().port))";
  const child = spawn(process.execPath, ['--eval', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const problem = await problemWith({ BERTH_API_PORT: port });
  child.kill();
  expect(problem).toMatchObject({
    message: expect.stringContaining(`in use by process ${child.pid} (node):`) as string,
  });
});

test('the error about an address that the machine does not have names the setting', async () => {
  const problem = await problemWith({ BERTH_LISTEN_HOST: '192.0.2.1' });
  expect(problem).toMatchObject({
    name: 'ConfigError',
    message: expect.stringMatching(/^BERTH_LISTEN_HOST: this machine has no address 192.0.2.1/) as string,
  });
});

test('errors about a forbidden port and about the port of a gateway name the setting; other errors are unchanged', async () => {
  const address = addressOf(loadConfig({ BERTH_GATEWAY_PORT: '80' }), 'gatewayHost', 'gatewayPort');
  const refused = Object.assign(new Error('listen EACCES'), { code: 'EACCES', errno: -13, syscall: 'listen' });
  expect(await listenProblem(refused, address)).toMatchObject({
    message: expect.stringMatching(/^BERTH_GATEWAY_PORT: this user may not listen on port 80/) as string,
  });
  const file = Object.assign(new Error('EACCES: permission denied, mkdir'), {
    code: 'EACCES',
    errno: -13,
    syscall: 'mkdir',
  });
  for (const other of [new Error('something else'), file]) expect(await listenProblem(other, address)).toBe(other);
});

test.skipIf(!engine)('the start fails with an error that names a gateway port in use', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const settings = {
    BERTH_ADVERTISED_HOST: '127.0.0.1',
    BERTH_GATEWAY_HOST: '127.0.0.1',
    BERTH_GATEWAY_PORT: `${port}`,
  };
  const started = startPlatform({ engine, settings });
  await expect(started).rejects.toThrow(
    `\nBERTH_GATEWAY_PORT: port ${port} of 127.0.0.1 is in use by process ${process.pid} (`,
  );
  holder.close();
});

test.each([
  [{ BERTH_SESSION_DOMAIN: 'localhost' }, /^http:\/\/\*\.localhost:\d+$/],
  [{ BERTH_SESSION_DOMAIN: 's.example', BERTH_PROXY_URL: 'https://s.example' }, /^https:\/\/\*\.s\.example$/],
  [
    { BERTH_SESSION_DOMAIN: 's.example', BERTH_PROXY_URL: 'https://p.example:8443/a' },
    /^https:\/\/\*\.s\.example:8443$/,
  ],
])('URLs of sessions have the scheme and port of the proxy: %j', async (environment, expected) => {
  await using opening = new AsyncDisposableStack();
  const config = loadConfig({ ...allFree, ...environment });
  const urls = urlsOf(config, await openListeners({ config, roles: allRoles }, opening), '127.0.0.1:7102');
  expect(urls.sessions).toMatch(expected);
  expect(new URL(urls.sessions?.replace('*.', '') ?? '').port).toBe(new URL(urls.proxy).port);
});

test('without a session domain, there are no session URLs by host', async () => {
  await using opening = new AsyncDisposableStack();
  const config = loadConfig(allFree);
  expect(urlsOf(config, await openListeners({ config, roles: allRoles }, opening))).not.toHaveProperty('sessions');
});

test('the API sends Strict-Transport-Security for a day or as configured, and the registry does not', async () => {
  const contexts = new SecureContexts([await newPair(['api.example'])]);
  const headers = async (environment: Readonly<Record<string, string>>) => {
    await using opening = new AsyncDisposableStack();
    const config = loadConfig({ ...allFree, ...environment });
    const { api, registry } = await openListeners({ config, roles: allRoles, contexts }, opening);
    const answers = [api, registry].map(async (listener) => {
      const request = get(`https://${listener?.hostPort}/`, { rejectUnauthorized: false, agent: false });
      const [answer] = (await once(request, 'response')) as [IncomingMessage];
      answer.resume();
      return answer.headers['strict-transport-security'];
    });
    return await Promise.all(answers);
  };
  expect(await headers({})).toEqual(['max-age=86400', undefined]);
  expect(await headers({ BERTH_HSTS_SECONDS: '31536000' })).toEqual(['max-age=31536000', undefined]);
  expect(await headers({ BERTH_HSTS_SECONDS: '0' })).toEqual([undefined, undefined]);
});
