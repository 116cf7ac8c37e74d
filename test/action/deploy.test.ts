// Takes about 40 s
/** The deploy action, whose bundle runs as on GitHub, against a platform on a real engine. */
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createWriteStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { ImageObject, ServiceObject } from '../../contract/service.ts';
import { packImage } from '../../setup/image.ts';
import { runCommand, tryCommand } from '../../setup/command.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { pushTestImage, testImage } from '../kit/engines/images.ts';
import { clientProgram } from '../kit/packages/client-packages.ts';
import { api, waitFor } from '../kit/platform/api-client.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { openIssuer } from './issuer.ts';
import type { Issuer } from './issuer.ts';
import { action, Job } from './runner.ts';
import type { With } from './runner.ts';

const [engine] = testEngines();
const buildx = await clientProgram('docker-buildx');

const digestPattern = /^sha256:[0-9a-f]{64}$/;

/** Each line is an attack that has worked on some tool. */
const hostileMessage = [
  'Draw `circles` "round" $(touch pwned) <script>alert(1)</script> | [link](https://evil.example)',
  '',
  'EOF',
  'NODE_OPTIONS=--require /tmp/evil.js',
  'EVIL=1',
  '::add-mask::serving',
  '::error::injected',
  '::set-output name=digest::sha256:evil',
  '##[error]injected',
  'quote \' and " and \\ and %0A',
].join('\n');

describe.skipIf(!engine)('the deploy action', () => {
  let platform: TestPlatform;
  let issuer: Issuer;
  let folder: string;
  let archive: string;
  const good = `berth-test/action-good:${process.pid}`;
  const bad = `berth-test/action-bad:${process.pid}`;
  const deaf = `berth-test/action-deaf:${process.pid}`;
  const at = { env: { DOCKER_HOST: engine?.host, DOCKER_BUILDKIT: '0' } };
  const owned = new AsyncDisposableStack();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-action-'));
    owned.defer(async () => await rm(folder, { recursive: true, force: true }));
    issuer = owned.use(await openIssuer(folder));
    const settings = {
      BERTH_OIDC_ISSUERS: issuer.url,
      NODE_EXTRA_CA_CERTS: issuer.authority,
      BERTH_URL_FORM: 'path',
    };
    platform = owned.use(await startPlatform({ engine, settings }));
    const [serving, failing, silent] = await Promise.all([testImage('serve'), testImage('failing'), testImage('deaf')]);
    archive = join(folder, 'image.tar');
    await pipeline(packImage({ ...serving, tag: 'any/name:v1' }), createWriteStream(archive));
    await runCommand('docker', ['load', '--quiet'], { ...at, input: packImage({ ...serving, tag: good }) });
    await runCommand('docker', ['load', '--quiet'], { ...at, input: packImage({ ...failing, tag: bad }) });
    await runCommand('docker', ['load', '--quiet'], { ...at, input: packImage({ ...silent, tag: deaf }) });
  });
  afterAll(async () => {
    const { stdout } = await tryCommand('docker', ['images', '--format', '{{.Repository}}:{{.Tag}}'], at);
    const own = stdout
      .split('\n')
      .filter((name) => [good, bad, deaf].includes(name) || name.startsWith(`${platform.registry}/`));
    if (own.length > 0) await tryCommand('docker', ['rmi', '--force', ...own], at);
    await owned.disposeAsync();
  });

  /** A job of a repository with a commit. */
  async function jobOf(message: string): Promise<{ job: Job; hash: string }> {
    const probe = await Job.in(folder, {});
    await writeFile(join(probe.workspace, 'Dockerfile'), `FROM ${good}\nENV BUILT=1\n`);
    await writeFile(join(probe.workspace, 'message'), message);
    const git = async (...args: string[]) => await runCommand('git', args, { cwd: probe.workspace });
    await git('init', '--quiet', '--initial-branch', 'main');
    await git('add', 'Dockerfile');
    const author = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', '-c', 'commit.gpgsign=false'];
    await git(...author, 'commit', '--quiet', '--cleanup=verbatim', '--file', 'message');
    return { job: probe, hash: (await git('rev-parse', 'HEAD')).trim() };
  }

  function runnerOf(hash: string): Record<string, string | undefined> {
    return {
      ...at.env,
      GITHUB_SHA: hash,
      GITHUB_REF_NAME: 'main',
      GITHUB_REPOSITORY: 'acme/draw',
      GITHUB_SERVER_URL: 'https://github.com',
    };
  }

  const withToken = (more: With): With => ({ host: platform.apiUrl, token: platform.token, ...more });

  async function get<T>(path: string): Promise<T> {
    return (await (await api(platform, path)).json()) as T;
  }

  async function imageOfDefault(service: string): Promise<string | undefined> {
    const { environments } = await get<ServiceObject>(`/v2/service/${platform.account}/${service}`);
    return environments.find(({ name }) => name === 'default')?.image_tag;
  }

  test('the workflow of its README builds, deploys and waits, with a hostile commit message', async () => {
    const readme = await readFile(join(import.meta.dirname, '../../action/README.md'), 'utf8');
    const [, snippet = ''] = /```yaml\n([^]*?)```/.exec(readme) ?? [];
    const workflow = parse(snippet) as {
      jobs: { deploy: { steps: { id?: string; with?: With }[] } };
    };
    const inputs = { ...workflow.jobs.deploy.steps.find(({ id }) => id === 'deploy')?.with, host: platform.apiUrl };
    const [, rule = ''] = /\/trust [^]*?-d '([^']+)'/.exec(readme) ?? [];
    const post = async (path: string, body: object) =>
      await api(platform, path, { method: 'POST', body: JSON.stringify(body) });
    expect((await post('/v2/account/home/service', { name: 'draw' })).status).toBe(200);
    const trust = { ...(JSON.parse(rule) as object), issuer: issuer.url };
    expect((await post('/v2/account/home/trust', trust)).status).toBe(201);

    const { job, hash } = await jobOf(hostileMessage);
    const claims = { repository: 'acme/draw', ref: 'refs/heads/main', environment: 'production' };
    const env = { ...runnerOf(hash), ...issuer.jobOf(claims) };
    const step = await job.main(inputs, env);
    expect(step.log).not.toContain('Error');
    expect(step.code).toBe(0);
    expect(Object.keys(step.outputs)).toEqual(Object.keys(action.outputs));
    const { digest, image, url = '', 'backend-id': backend } = step.outputs;
    expect(digest).toMatch(digestPattern);
    expect(image).toBe(`${platform.registry}/home/draw@${digest}`);
    expect(await (await fetch(url)).text()).toContain('Hello from a test backend');
    expect(await imageOfDefault('draw')).toBe(digest);
    const { images } = await get<{ images: ImageObject[] }>('/v2/service/home/draw/images');
    expect(images).toMatchObject([
      {
        digest,
        tag: `sha-${hash.slice(0, 12)}`,
        git_commit: { branch: 'main', hash, message: hostileMessage, repository: 'acme/draw' },
      },
    ]);

    // No part of the message became a command, a variable or markup in the summary.
    expect(step.environment).toBe('');
    expect(Object.keys(step.state).toSorted()).toEqual(['docker-config', 'is-post']);
    const names = new Set(step.commands.map(({ name }) => name));
    expect([...names].toSorted()).toEqual(['add-mask', 'endgroup', 'group', 'stop-commands']);
    expect(step.commands.some(({ data }) => data === 'serving')).toBe(false);
    expect(await readdir(job.workspace)).not.toContain('pwned');
    expect(step.summary).toContain(hash.slice(0, 12));
    expect(step.summary).toContain(digest);
    expect(step.summary).toContain(backend);
    expect(step.summary).toMatch(/<th>Size<\/th><td>\d+\.\d MB/);
    expect(step.summary).toMatch(/<th>Time<\/th><td>\d+\.\d s/);
    expect(step.summary).not.toMatch(/<script|`|\[link\]|EVIL/);

    // The deploy token, the ID token and the log-in of docker are masked; the URL of the session is in the outputs only.
    const masks = step.commands.flatMap(({ name, data }) => (name === 'add-mask' ? data : []));
    const exchange = [expect.stringMatching(/^eyJ/), expect.stringMatching(/^home\.berth_dep_/)];
    const logIn = expect.stringMatching(/^[\w+/=]+$/);
    // Before the build, before the push, for the digest in the registry, and for the rollout.
    expect(masks).toEqual([...exchange, logIn, ...exchange, logIn, ...exchange, ...exchange]);
    expect(Buffer.from(masks[2] ?? '', 'base64').toString()).toBe(`home:${masks[1]}`);
    expect(Buffer.from(masks[5] ?? '', 'base64').toString()).toBe(`home:${masks[4]}`);
    for (const secret of [...masks, url]) expect(`${step.log}${step.summary}`).not.toContain(secret);
    expect(await readdir(job.temp)).toEqual([]);
  });

  test('the step masks the token before it prints other lines, and uploads an archive without Docker', async () => {
    const { job, hash } = await jobOf('Second');
    const bin = join(folder, 'no-programs');
    const inputs = withToken({ service: 'uploaded', archive, tags: 'v1, v1.0' });
    const step = await job.main(inputs, { ...runnerOf(hash), PATH: bin });
    expect([step.code, step.log]).toEqual([0, expect.any(String)]);
    expect(step.commands[0]).toMatchObject({ name: 'add-mask', data: platform.token });
    expect(step.raw.startsWith('::add-mask::')).toBe(true);
    expect(`${step.log}${step.summary}`).not.toContain(platform.token);
    expect(await (await fetch(step.outputs['url'] ?? '')).text()).toContain('Hello from a test backend');
    const { images } = await get<{ images: ImageObject[] }>('/v2/service/home/uploaded/images');
    expect(images.map(({ tag }) => tag).toSorted()).toEqual(['v1', 'v1.0']);
    expect(new Set(images.map(({ digest }) => digest))).toEqual(new Set([step.outputs['digest']]));
  });

  test('an image that does not become ready is rolled back, although the push has moved its tag', async () => {
    if (!engine) throw new Error('No engine');
    const image = await testImage('serve', 'before');
    const before = await pushTestImage(engine, platform, { image, service: 'fragile' });
    expect(await imageOfDefault('fragile')).toBe('latest');
    const { job, hash } = await jobOf('Third');
    const inputs = withToken({ service: 'fragile', image: bad, tags: 'latest', 'rollback-on-failure': true });
    const step = await job.main(inputs, runnerOf(hash));
    expect(step.code).toBe(1);
    const annotations = step.commands.filter(({ name }) => name === 'error' || name === 'notice');
    expect(annotations).toEqual([
      { name: 'notice', properties: 'title=Berth', data: expect.stringContaining(`run ${before} again`) },
      { name: 'error', properties: 'title=Berth', data: expect.stringMatching(/ended before it was ready/) },
    ]);
    expect(step.log).toContain('This backend cannot go on');
    expect(step.outputs['digest']).toMatch(digestPattern);
    expect(await imageOfDefault('fragile')).toBe(before);
    const other = await job.main(withToken({ service: 'fragile', image: bad }), runnerOf(hash));
    expect([other.code, await imageOfDefault('fragile')]).toEqual([1, other.outputs['digest']]);
  });

  test('a step that is cancelled during the push rolls back the tag that it has moved, and keeps a tag that it has not', async () => {
    if (!engine) throw new Error('No engine');
    const image = await testImage('serve', 'first');
    const before = await pushTestImage(engine, platform, { image, service: 'moved' });
    const { job, hash } = await jobOf('Moved');
    const inputs = withToken({ service: 'moved', tags: 'latest,v2,v3,v4,v5', 'rollback-on-failure': true });
    const failed = await job.main({ ...inputs, image: 'missing:v1' }, runnerOf(hash));
    expect(failed.commands.map(({ name }) => name)).not.toContain('notice');
    expect(await imageOfDefault('moved')).toBe('latest');
    const pushing = { name: 'SIGINT', when: /^latest: digest: /m } as const;
    const bin = join(folder, 'blocking-docker');
    await mkdir(bin);
    const block = 'case "$*" in *push*:v2) exec sleep 600 ;; esac';
    const program = `#!/bin/sh\n${block}\nPATH=\${PATH#*:}\nexec docker "$@"\n`;
    await writeFile(join(bin, 'docker'), program, { mode: 0o755 });
    const env = { ...runnerOf(hash), PATH: `${bin}:${process.env['PATH']}` };
    const step = await job.main({ ...inputs, image: deaf }, env, pushing);
    expect(step.log).not.toContain('Waiting for the backend');
    const annotations = step.commands.filter(({ name }) => ['error', 'warning', 'notice'].includes(name));
    expect(annotations.map(({ data }) => data)).toEqual([
      expect.stringContaining(`run ${before} again`),
      'The step was cancelled',
    ]);
    expect(await imageOfDefault('moved')).toBe(before);
  });

  test('the post step logs out after a step that was killed', async () => {
    const { job, hash } = await jobOf('Fourth');
    const inputs = withToken({ service: 'killed' });
    const step = await job.main(inputs, runnerOf(hash), {
      name: 'SIGKILL',
      when: /::stop-commands::[^]*docker-config/,
    });
    expect(step.code).toBe(null);
    expect(await readdir(job.temp)).toEqual([basename(step.state['docker-config'] ?? '')]);
    const post = await job.post(inputs, step.state);
    expect([post.code, post.raw, await readdir(job.temp)]).toEqual([0, '', []]);
  });

  test('a step that is cancelled while it waits stops its backend, and rolls back', async () => {
    const { job, hash } = await jobOf('Fifth');
    const inputs = withToken({ service: 'cancelled', 'rollback-on-failure': true });
    const first = await job.main({ ...inputs, archive, 'rollback-on-failure': false }, runnerOf(hash));
    expect(first.code).toBe(0);
    const waiting = { name: 'SIGINT', when: /Waiting for the backend/ } as const;
    const step = await job.main({ ...inputs, image: deaf }, runnerOf(hash), waiting);
    expect(step.code).toBe(1);
    const annotations = step.commands.filter(({ name }) => name === 'error' || name === 'notice');
    expect(annotations.map(({ data }) => data)).toEqual([
      expect.stringContaining(`run ${first.outputs['digest']} again`),
      'The step was cancelled',
    ]);
    expect(await imageOfDefault('cancelled')).toBe(first.outputs['digest']);
    const backend = /Waiting for the backend (\w+)/.exec(step.log)?.[1] ?? '';
    expect(await waitFor(platform, backend, 'terminated')).toMatchObject({ termination_reason: 'external' });
  });

  test('a backend that is not ready in time fails the step', async () => {
    const { job, hash } = await jobOf('Sixth');
    const step = await job.main(
      withToken({ service: 'late', image: deaf, 'ready-timeout-seconds': '1' }),
      runnerOf(hash),
    );
    expect(step.code).toBe(1);
    expect(step.log).toMatch(/The backend \w+ was not ready within 1 seconds/);
    const backend = /Waiting for the backend (\w+)/.exec(step.log)?.[1] ?? '';
    expect(await waitFor(platform, backend, 'terminated')).toMatchObject({ termination_kind: 'hard' });
  });

  test('a rollback and the end of its backend do not depend on the deploy token of the push, which may expire before', async () => {
    const { job, hash } = await jobOf('Slow');
    const scopes = ['push', 'deploy', 'connect', 'read'];
    const rule = JSON.stringify({ issuer: issuer.url, repository: 'acme/slow', scopes });
    expect((await api(platform, '/v2/account/home/trust', { method: 'POST', body: rule })).status).toBe(201);
    const inputs = { host: platform.apiUrl, service: 'home/slow' };
    const before = await job.main(withToken({ ...inputs, archive, 'wait-for-ready': false }), runnerOf(hash));
    const env = { ...runnerOf(hash), ...issuer.jobOf({ repository: 'acme/slow', ref: 'refs/heads/main' }) };
    // Enough time to revoke the token.
    const options = { 'rollback-on-failure': true, 'ready-timeout-seconds': '10' };
    const running = job.main({ ...inputs, image: deaf, ...options }, env);
    interface Created {
      readonly id: string;
      readonly created_at: string;
    }
    const backends = async () => (await get<{ backends: Created[] }>('/v2/service/home/slow/backends')).backends;
    await expect.poll(backends, { interval: 250, timeout: 60_000 }).toHaveLength(1);
    const [backend] = await backends();
    const { tokens } = await get<{ tokens: (Created & { kind: string })[] }>('/v2/account/home/tokens');
    // Not the token of the rollback, which a busy machine may have created by now.
    const ofPush = tokens.filter((each) => each.kind === 'deploy' && each.created_at < (backend?.created_at ?? ''));
    expect(ofPush).not.toEqual([]);
    for (const { id } of ofPush) {
      await api(platform, `/v2/account/home/token/${id}/revoke`, { method: 'POST' });
    }
    const step = await running;
    const annotations = step.commands.filter(({ name }) => ['error', 'warning', 'notice'].includes(name));
    expect(annotations.map(({ data }) => data)).toEqual([
      expect.stringContaining(`run ${before.outputs['digest']} again`),
      expect.stringMatching(/was not ready within 10 seconds/),
    ]);
    expect(await imageOfDefault('slow')).toBe(before.outputs['digest']);
    expect(await waitFor(platform, backend?.id ?? '', 'terminated')).toMatchObject({ termination_kind: 'hard' });
  });

  test('a rollback keeps an image that another deployment has set meanwhile', async () => {
    const { job, hash } = await jobOf('Other');
    const inputs = withToken({ service: 'contested', archive, tags: 'v1', 'wait-for-ready': false });
    const { outputs } = await job.main(inputs, runnerOf(hash));
    // Enough time for the other deployment to notice this one and to set its image.
    const options = { 'rollback-on-failure': true, 'ready-timeout-seconds': '10' };
    const running = job.main(withToken({ service: 'contested', image: deaf, ...options }), runnerOf(hash));
    await expect.poll(async () => await imageOfDefault('contested'), { interval: 250 }).not.toBe(outputs['digest']);
    const tag = { method: 'POST', body: JSON.stringify({ image_tag: 'v1' }) };
    expect((await api(platform, '/v2/service/home/contested/update', tag)).status).toBe(200);
    const step = await running;
    const warnings = step.commands.filter(({ name }) => name === 'warning').map(({ data }) => data);
    expect(warnings).toEqual(['No rollback: another deployment has set home/contested/default to v1']);
    expect([step.code, await imageOfDefault('contested')]).toEqual([1, 'v1']);
  });

  test('a trust rule without connect and read allows a deployment, and the error of a wait or rollback names the missing scopes before the push', async () => {
    const { job, hash } = await jobOf('Narrow');
    const rule = JSON.stringify({ issuer: issuer.url, repository: 'acme/narrow' });
    expect((await api(platform, '/v2/account/home/trust', { method: 'POST', body: rule })).status).toBe(201);
    const env = { ...runnerOf(hash), ...issuer.jobOf({ repository: 'acme/narrow', ref: 'refs/heads/main' }) };
    const inputs = { host: platform.apiUrl, service: 'home/narrow', archive };
    const plain = await job.main({ ...inputs, 'wait-for-ready': false }, env);
    expect([plain.code, plain.outputs]).toMatchObject([0, { 'backend-id': '', url: '' }]);
    expect(await imageOfDefault('narrow')).toBe(plain.outputs['digest']);
    const errorOf = async (more: With) => {
      const { commands, outputs } = await job.main({ ...inputs, ...more }, env);
      // Before the push.
      expect(outputs['digest']).toBeUndefined();
      return commands.find(({ name }) => name === 'error')?.data;
    };
    expect(await errorOf({})).toMatch(/^The trust rule has the scopes push,deploy, .* --scope push,deploy,connect$/);
    expect(await errorOf({ 'rollback-on-failure': true })).toMatch(/ --scope push,deploy,connect,read$/);
  });

  test.skipIf(!buildx)(
    'buildx builds from another file with arguments, for an environment of the service',
    async () => {
      const { job, hash } = await jobOf('Seventh');
      await mkdir(join(job.home, '.docker/cli-plugins'), { recursive: true });
      await symlink(buildx ?? '', join(job.home, '.docker/cli-plugins/docker-buildx'));
      await mkdir(join(job.workspace, 'deploy'));
      await writeFile(
        join(job.workspace, 'deploy/web.dockerfile'),
        `FROM ${good}\nARG GREETING\nENV GREETING=$GREETING\n`,
      );
      const post = async (path: string, body: object) =>
        await api(platform, path, { method: 'POST', body: JSON.stringify(body) });
      expect((await post('/v2/account/home/service', { name: 'staged' })).status).toBe(200);
      expect((await post('/v2/service/home/staged/environments', { name: 'staging' })).status).toBe(200);
      const build = {
        file: 'deploy/web.dockerfile',
        context: 'deploy',
        'build-args': 'GREETING=a,b "c"',
        tags: 'v1,v2',
      };
      const step = await job.main(
        withToken({ service: 'home/staged', environment: 'staging', ...build }),
        runnerOf(hash),
      );
      expect([step.code, step.log]).toEqual([0, expect.stringContaining('#1 ')]);
      const { digest, url = '' } = step.outputs;
      expect(await (await fetch(`${url}cgi-bin/env`)).text()).toContain('GREETING=a,b "c"\n');
      const { images } = await get<{ images: ImageObject[] }>('/v2/service/home/staged/images');
      expect(images.map(({ tag }) => tag).toSorted()).toEqual(['v1', 'v2']);
      expect(images).toMatchObject([{ digest, git_commit: { hash, message: 'Seventh' } }, { digest }]);
      const { environments } = await get<ServiceObject>('/v2/service/home/staged');
      expect(Object.fromEntries(environments.map(({ name, image_tag: tag }) => [name, tag]))).toEqual({
        default: 'latest',
        staging: digest,
      });
    },
  );

  test('problems are annotations that name the input', async () => {
    const { job, hash } = await jobOf('Eighth');
    const errorsOf = async (inputs: With, env = {}) => {
      const step = await job.main(inputs, { ...runnerOf(hash), ...env });
      expect(step.code).toBe(1);
      return step.commands.filter(({ name }) => name === 'error').map(({ data }) => data);
    };
    const claims = { repository: 'eve/draw', ref: 'refs/heads/main', environment: 'production' };
    const [wrong, noToken, forbidden, noFile, noImage] = await Promise.all([
      errorsOf({ host: 'http://berth.example.com', 'wait-for-ready': 'yes', tags: 'a b' }),
      errorsOf({ host: platform.apiUrl, account: 'home', service: 'draw' }),
      errorsOf({ host: platform.apiUrl, account: 'home', service: 'draw' }, issuer.jobOf(claims)),
      errorsOf(withToken({ service: 'draw', archive: 'missing.tar' })),
      errorsOf(withToken({ service: 'draw', image: 'missing:v1' })),
    ]);
    expect(wrong).toEqual([
      expect.stringMatching(/^host: Use https[^]*\nservice: Set it[^]*\ntags: "a b"[^]*\nwait-for/),
    ]);
    expect(noToken).toEqual([expect.stringMatching(/^token: Set it, or .*id-token: write/)]);
    expect(forbidden).toEqual([expect.stringMatching(/^The account home has not accepted this job: /)]);
    expect(noFile).toEqual(['archive: Cannot read missing.tar: it does not exist']);
    expect(noImage).toEqual([expect.stringMatching(/^image: Docker does not have "missing:v1": /)]);
  });
});
