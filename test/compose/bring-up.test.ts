// Takes about 40 s
/** docker-compose.yml, started on a real engine: the main job works, and sessions survive the replacement of every process. */
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectResponse } from '../../contract/connect.ts';
import type { ConnectResponse } from '../../contract/connect.ts';
import { runCommand } from '../../setup/command.ts';
import { pushTestImage, testImage } from '../kit/engines/images.ts';
import { localLookup } from '../kit/platform/session-client.ts';
import { deploy } from './deployment.ts';
import type { Deployment } from './deployment.ts';
import { problem } from './problem.ts';

const missing = await problem();

/** The build and the start of seven containers take 50 seconds on two cores. */
const deployTimeoutMs = 240_000;

const account = 'home';

describe.skipIf(missing !== undefined)(
  `docker compose up${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    let deployment: Deployment;

    beforeAll(async () => {
      deployment = await deploy();
      const image = await testImage('serve');
      await pushTestImage(deployment.engine, { ...deployment, account }, { image, service: 'serve' });
    }, deployTimeoutMs);
    afterAll(() => deployment?.[Symbol.asyncDispose](), deployTimeoutMs);

    test('a connect to a pushed image returns a URL that answers through Caddy, proxy and gateway, and the backend can be stopped', async () => {
      const session = await connect({ key: 'main-job' });
      const answer = await fetch(session.url);
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('Hello from a test backend')]);
      const { statuses } = await ask<{ statuses: { status: string }[] }>(`/v2/backend/${session.backend_id}`);
      expect(statuses.map(({ status }) => status)).toEqual(['scheduled', 'loading', 'starting', 'waiting', 'ready']);
      await ask(`/v2/backend/${session.backend_id}/terminate`, {});
      expect(await statusesOf(session)).toContain('"status":"terminated"');
      expect((await fetch(session.url)).status).toBe(410);
    });

    test('each session has its own host, over TLS with the wildcard certificate', async () => {
      const session = await connect({ key: 'host', url_form: 'host' });
      const { hostname } = new URL(session.url);
      expect(hostname).toMatch(/^[a-z2-7]{52}\.sessions\.berth\.test$/);
      const { httpsPort, certificate: ca } = deployment;
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      const lookup = localLookup;
      const options = { host: hostname, port: httpsPort, path: '/cgi-bin/env', ca, lookup, agent: false };
      request(options, resolve).once('error', reject).end();
      const answer = await promise;
      const seen = await text(answer);
      expect([answer.statusCode, seen]).toEqual([200, expect.stringContaining('HTTP_X_FORWARDED_PROTO=https\n')]);
      expect(seen).toContain(`SESSION_BACKEND_URL=${session.url}\n`);
    });

    test('a session survives the replacement of every component', async () => {
      const session = await connect({ key: 'upgrade' });
      expect((await fetch(session.url)).status).toBe(200);
      const container = await containerOf(session);
      for (const component of ['registry', 'api', 'worker', 'proxy']) {
        await deployment.compose.up('--no-deps', '--force-recreate', component);
        expect([component, (await fetch(session.url)).status]).toEqual([component, 200]);
      }
      expect(await containerOf(session)).toBe(container);
      const again = await connect({ key: 'upgrade' });
      expect([again.spawned, again.backend_id]).toEqual([false, session.backend_id]);
    });

    test('no session is lost when Redis restarts without data', async () => {
      const session = await connect({ key: 'redis' });
      expect((await fetch(session.url)).status).toBe(200);
      const ask = `REDISCLI_AUTH=$(sed -n 's/^requirepass //p' /run/secrets/redis.conf) redis-cli flushall`;
      expect(await deployment.compose.run('exec', '--no-TTY', 'redis', 'sh', '-c', ask)).toContain('OK');
      await deployment.compose.run('restart', 'redis');
      expect((await fetch(session.url)).status).toBe(200);
      const next = await connect({ key: 'redis-2' });
      expect((await fetch(next.url)).status).toBe(200);
    });

    test('registry, API and proxy can be scaled to two, and pushes use both registries', async () => {
      const session = await connect({ key: 'scaled' });
      const components = ['registry', 'api', 'proxy'] as const;
      const scales = components.flatMap((component) => ['--scale', `${component}=2`]);
      await deployment.compose.up('--no-deps', ...scales, ...components);
      // Caddy resolves the registries every two seconds, and sends requests to both.
      let pushes = 0;
      const pushedThrough = async () => {
        const image = await testImage('serve', `push-${(pushes += 1)}`);
        await pushTestImage(deployment.engine, { ...deployment, account }, { image, service: 'scaled' });
        return await registriesOf('scaled');
      };
      await expect.poll(pushedThrough, { interval: 1_000 }).toEqual(['registry-1', 'registry-2']);
      expect((await fetch(session.url)).status).toBe(200);
      await deployment.compose.up('--no-deps', ...components);
      expect((await fetch(session.url)).status).toBe(200);
    });

    test('berth is a command in the containers, with the settings of their process', async () => {
      const output = await deployment.compose.run('exec', '--no-TTY', 'registry', 'berth', 'quota', '--json');
      expect(JSON.parse(output.split('\n', 1)[0] ?? '')).toMatchObject({ account });
    });

    test('the containers of Berth do not run as root, and no configuration contains a password', async () => {
      const found = await docker('ps', '--quiet', '--filter', 'label=com.docker.compose.project');
      const format = '{{index .Config.Labels "com.docker.compose.service"}} {{.Config.User}} {{json .}}';
      const lines = (await docker('inspect', '--format', format, ...found.trim().split('\n'))).trim().split('\n');
      expect(lines).toHaveLength(7);
      const code = await deployment.compose.run('exec', '--no-TTY', 'api', 'cat', '/data/setup-code');
      expect(code.trim()).toMatch(/^(?:[a-z2-9]{5}-){3}[a-z2-9]{5}$/);
      const secrets = await deployment.compose.run('exec', '--no-TTY', 'api', 'cat', '/run/secrets/berth.env');
      const passwords = Array.from(secrets.matchAll(/:([0-9a-f]{64})@/g), ([, password]) => password ?? '');
      expect(passwords.length).toBeGreaterThanOrEqual(2);
      for (const line of lines) {
        const [service = '', user] = line.split(' ');
        if (['registry', 'api', 'proxy', 'worker'].includes(service))
          expect([service, user]).toEqual([service, '1000:1000']);
        expect([service, passwords.filter((password) => line.includes(password))]).toEqual([service, []]);
      }
    });

    async function connect(request: object): Promise<ConnectResponse> {
      return connectResponse.parse(await ask(`/v2/service/${account}/serve/connect`, request));
    }

    /** Sends a request to the API: a POST if there is a body. */
    async function ask<Answer>(path: string, body?: object): Promise<Answer> {
      const headers = { authorization: `Bearer ${deployment.token}`, 'content-type': 'application/json' };
      const init = body && { method: 'POST', body: JSON.stringify(body) };
      const answer = await fetch(`${deployment.apiUrl}${path}`, { headers, ...init });
      expect([path, answer.status]).toEqual([path, 200]);
      return (await answer.json()) as Answer;
    }

    /** Every status of a backend, once it has ended. */
    async function statusesOf({ backend_id: id }: ConnectResponse): Promise<string> {
      return await (await fetch(`${deployment.apiUrl}/v2/backend/${id}/status/stream`)).text();
    }

    /** The registries that received requests for the images of a service, by their logs. */
    async function registriesOf(service: string): Promise<string[]> {
      const log = await deployment.compose.run('logs', '--no-color', 'registry');
      const requests = log.split('\n').filter((line) => line.includes(`"repository":"${account}/${service}"`));
      return [...new Set(requests.map((line) => line.split(' ', 1)[0] ?? ''))].toSorted();
    }

    async function containerOf({ backend_id: id }: ConnectResponse): Promise<string> {
      return (await docker('ps', '--quiet', '--filter', `label=berth.backend=${id}`)).trim();
    }

    async function docker(...args: string[]): Promise<string> {
      return await runCommand('docker', args, { env: { DOCKER_HOST: deployment.engine.host } });
    }
  },
);
