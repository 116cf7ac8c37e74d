/** The contents of docker-compose.yml, as docker-compose reads it. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runCommand } from '../../setup/command.ts';
import { loadConfig } from '../../main/config/config.ts';
import { assertShared, parseRoles } from '../../main/config/roles.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { Compose, composeProgram, noCompose } from './compose.ts';
import type { ComposeSettings } from './compose.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const program = await composeProgram();

const service = z.object({
  image: z.string(),
  command: z.array(z.string()).nullish(),
  restart: z.string(),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  healthcheck: z.object({ interval: z.string(), test: z.array(z.string()).optional() }),
  deploy: z.object({
    resources: z.object({ limits: z.object({ cpus: z.number(), memory: z.string(), pids: z.number() }) }),
  }),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  networks: z.record(z.string(), z.unknown()).default({}),
  network_mode: z.string().optional(),
  ports: z.array(z.object({ host_ip: z.string().optional(), published: z.string(), target: z.number() })).default([]),
  volumes: z.array(z.object({ source: z.string().optional(), target: z.string() })).default([]),
  secrets: z.array(z.object({ source: z.string() })).default([]),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  group_add: z.array(z.string()).default([]),
  extra_hosts: z.array(z.string()).default([]),
  privileged: z.boolean().default(false),
  user: z.string().optional(),
});
const file = z.object({
  services: z.record(z.string(), service),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});

type Service = z.infer<typeof service>;

const components = ['registry', 'api', 'proxy', 'worker'];

async function read(settings: ComposeSettings = {}, files: string[] = []) {
  const compose = new Compose(program ?? 'docker-compose', { DOCKER_GID: '998', DOMAIN: '', ...settings }, files);
  return file.parse(await compose.config());
}

describe.skipIf(program === undefined)(`docker-compose.yml${program ? '' : ` (skipped: ${noCompose})`}`, () => {
  test('every service has a health check, a restart policy and limits', async () => {
    const { services } = await read();
    expect(Object.keys(services).sort()).toEqual([...components, 'caddy', 'mongodb', 'redis'].sort());
    for (const each of Object.values(services)) {
      expect(each.restart).toBe('unless-stopped');
      expect(each.healthcheck.interval).toMatch(/^\d+s$/);
      const { cpus, memory, pids } = each.deploy.resources.limits;
      expect([cpus, Number(memory), pids].every((limit) => limit > 0)).toBe(true);
    }
  });

  test('services with other images declare a health check, and the image of Berth contains one', async () => {
    const { services } = await read();
    for (const [name, each] of Object.entries(services)) {
      expect(each.healthcheck.test !== undefined).toBe(!components.includes(name));
    }
    expect(await readFile(join(root, 'Dockerfile'), 'utf8')).toMatch(/^HEALTHCHECK [^]*\/readyz/m);
  });

  test('only the worker has the Docker socket and the host network', async () => {
    const { services } = await read();
    const withSocket = namesOf(services, (each) => each.volumes.some(({ source }) => source?.includes('docker.sock')));
    expect(withSocket).toEqual(['worker']);
    expect(namesOf(services, (each) => each.network_mode === 'host')).toEqual(['worker']);
    expect(namesOf(services, (each) => each.group_add.length > 0)).toEqual(['worker']);
    expect(namesOf(services, (each) => each.privileged || each.user === 'root')).toEqual([]);
  });

  test('the processes of Berth have no capabilities and a read-only root, and are not root', async () => {
    const { services } = await read();
    for (const name of components) expect(services[name]).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
    expect(await readFile(join(root, 'Dockerfile'), 'utf8')).toMatch(/^USER 1000:1000$/m);
  });

  test('secrets are files, and no environment variable contains one', async () => {
    const { services, secrets } = await read();
    for (const { file: path } of Object.values(secrets)) expect(path).toMatch(/^\/.*deploy\/secrets\//);
    for (const [name, each] of Object.entries(services)) {
      for (const [variable, value] of Object.entries(each.environment)) {
        const isSecret = /secret|password|mongodb_url|redis_url|token/i.test(variable);
        expect([name, variable, isSecret && !value?.startsWith('/run/secrets/')]).toEqual([name, variable, false]);
      }
    }
    for (const name of components) expect(services[name]?.secrets.map(({ source }) => source)).toContain('berth.env');
    expect(services['caddy']?.secrets).toEqual([]);
  });

  test('each component starts when the stores are healthy, and Caddy when the components are', async () => {
    const { services } = await read();
    const healthy = (...names: string[]) =>
      Object.fromEntries(names.map((name) => [name, expect.objectContaining({ condition: 'service_healthy' })]));
    for (const name of components) expect(services[name]?.depends_on).toEqual(healthy('mongodb', 'redis'));
    expect(services['caddy']?.depends_on).toEqual(healthy('registry', 'api', 'proxy'));
  });

  test('Caddy does not reach the stores', async () => {
    const { services } = await read();
    expect(Object.keys(services['caddy']?.networks ?? {})).toEqual(['components']);
    expect(Object.keys(services['mongodb']?.networks ?? {})).toEqual(['stores']);
  });

  test('Berth accepts the settings of every component', async () => {
    const { services } = await read({ DOMAIN: 'berth.example' });
    for (const name of components) {
      const urls = { BERTH_MONGODB_URL: 'mongodb://mongodb', BERTH_REDIS_URL: 'redis://redis' };
      const environment = Object.entries(services[name]?.environment ?? {}).map(([key, value]) => [key, value ?? '']);
      const config = loadConfig({ ...Object.fromEntries(environment), ...urls });
      expect(services[name]?.command).toEqual(['serve', '--roles', name]);
      expect(() => assertShared(config, parseRoles(name))).not.toThrow();
      // Caddy is in front of all components that clients reach.
      expect(config.behindLoadBalancer).toBe(name !== 'worker');
    }
  });

  test('without a domain, all ports are plain HTTP on loopback', async () => {
    const { services } = await read();
    const addresses = Object.values(services).flatMap(({ ports }) => ports.map(({ host_ip }) => host_ip));
    expect(new Set(addresses)).toEqual(new Set(['127.0.0.1']));
    expect(services['caddy']?.environment).toMatchObject({ API_SITES: 'http://:7100', PROXY_SITES: 'http://:7102' });
    expect(services['api']?.environment['BERTH_PROXY_URL']).toBe('http://127.0.0.1:7102');
    expect(services['worker']?.environment['BERTH_REGISTRY_PULL_HOST']).toBe('127.0.0.1:7101');
  });

  test('with a domain, Caddy uses the ports 80 and 443, and URLs have https', async () => {
    const { services } = await exampleWith('DOMAIN=berth.example');
    const { caddy, api } = services;
    const open = caddy?.ports.filter(({ host_ip }) => host_ip === '0.0.0.0').map(({ published }) => published);
    expect(new Set(open)).toEqual(new Set(['80', '443']));
    expect(caddy?.environment['REGISTRY_SITES']).toBe('https://registry.berth.example, http://:7101');
    expect(api?.environment).toMatchObject({
      BERTH_API_URL: 'https://api.berth.example',
      BERTH_REGISTRY_URL: 'https://registry.berth.example',
      BERTH_PROXY_URL: 'https://sessions.berth.example',
    });
    const others = Object.entries(services).filter(([name]) => name !== 'caddy');
    expect(others.flatMap(([, { ports }]) => ports).every(({ host_ip }) => host_ip === '127.0.0.1')).toBe(true);
  });

  test('with a session domain, Caddy has a site and a certificate for all hosts of the domain', async () => {
    const none = await exampleWith('DOMAIN=berth.example');
    const unused = { SESSION_SITES: 'http://:7108', SESSION_TLS: '', ACME_DNS_OPTION: '' };
    expect(none.services['caddy']?.environment).toMatchObject(unused);
    const settings = { DOMAIN: 'berth.example', SESSION_DOMAIN: 'sessions.berth.example' };
    const { services } = await read(settings);
    expect(services['caddy']?.environment).toMatchObject({
      SESSION_SITES: 'https://*.sessions.berth.example',
      SESSION_TLS: 'tls /certificates/sessions.crt /certificates/sessions.key',
    });
    for (const name of ['api', 'proxy']) {
      const { environment = {} } = services[name] ?? {};
      const texts = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, value ?? '']));
      const urls = { BERTH_MONGODB_URL: 'mongodb://mongodb', BERTH_REDIS_URL: 'redis://redis' };
      expect(loadConfig({ ...texts, ...urls })).toMatchObject({
        sessionDomain: 'sessions.berth.example',
        urlForm: undefined,
      });
    }
    const byDns = (await read({ ...settings, ACME_DNS: 'cloudflare {file./certificates/dns-token}' })).services;
    expect(byDns['caddy']?.environment).toMatchObject({
      SESSION_TLS: expect.stringMatching(/^# /),
      ACME_DNS_OPTION: 'acme_dns cloudflare {file./certificates/dns-token}',
    });
  });

  test('.env.example names every variable that docker-compose.yml reads', async () => {
    const text = await readFile(join(root, 'docker-compose.yml'), 'utf8');
    const mounts = await readFile(join(root, 'deploy/mounts.yml'), 'utf8');
    const example = await readFile(join(root, '.env.example'), 'utf8');
    const read = new Set(`${text}${mounts}`.match(/(?<=\$\{)[A-Z_]+/g));
    const listed = new Set(example.match(/(?<=^#?)[A-Z_]+(?==)/gm));
    expect([...read].filter((name) => !listed.has(name))).toEqual([]);
    expect([...listed].filter((name) => !read.has(name))).toEqual([]);
  });

  test('docker-compose reports a missing setting in .env', async () => {
    await expect(read({ DOCKER_GID: '' })).rejects.toThrow('Set DOCKER_GID in .env');
  });

  test('mounts.yml adds the mount folder, with the same path inside and outside the container', async () => {
    const { services } = await read({ BERTH_MOUNT_FOLDER: '/srv/mounts' }, ['deploy/mounts.yml']);
    expect(services['worker']?.environment['BERTH_MOUNT_FOLDER']).toBe('/srv/mounts');
    const mount = expect.objectContaining({ source: '/srv/mounts', target: '/srv/mounts' });
    expect(services['worker']?.volumes).toContainEqual(mount);
  });
});

test('deploy/make-secrets.sh creates secrets that Berth accepts in a private folder, and keeps existing ones', async () => {
  await using folder = await temporaryFolder();
  const make = async () => {
    await runCommand('sh', [join(root, 'deploy/make-secrets.sh'), join(folder.path, 'secrets')]);
    const names = ['berth-secret', 'berth.env', 'mongodb-key', 'mongodb-password', 'redis.conf', 'operations-token'];
    return await Promise.all(names.map((name) => readFile(join(folder.path, 'secrets', name), 'utf8')));
  };
  const [secret = '', environment = '', , password = '', redis = '', token = ''] = await make();
  expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
  expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
  expect(environment).toContain(`mongodb://berth:${password}@mongodb:27017/`);
  expect(environment).toContain(`redis://:${redis.trim().split(' ')[1]}@redis:6379`);
  expect(token).toMatch(/^[0-9a-f]{64}$/);
  expect(await make()).toEqual([secret, environment, expect.any(String), password, redis, token]);
  expect((await stat(join(folder.path, 'secrets'))).mode & 0o777).toBe(0o700);
});

function namesOf(services: Record<string, Service>, is: (each: Service) => boolean): string[] {
  return Object.entries(services)
    .filter(([, each]) => is(each))
    .map(([name]) => name);
}

/** The file with `.env.example` as `.env`, with some lines set. */
async function exampleWith(...lines: string[]) {
  await using folder = await temporaryFolder();
  const example = await readFile(join(root, '.env.example'), 'utf8');
  const text = lines.reduce((all, line) => all.replace(new RegExp(`^${line.split('=')[0]}=.*$`, 'm'), line), example);
  const path = join(folder.path, 'env');
  await writeFile(path, text.replace(/^DOCKER_GID=$/m, 'DOCKER_GID=998'));
  const compose = new Compose(program ?? 'docker-compose', {}, []);
  return file.parse(JSON.parse(await compose.run('--env-file', path, 'config', '--format', 'json')));
}
