// Takes about 25 s
/** `berth dev` as a process, on a folder with a Dockerfile and on a real engine. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { runCommand, tryCommand } from '../../setup/command.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { staticBusybox } from '../kit/packages/docker-packages.ts';
import { devInTerminal, DevProcess } from './dev-process.ts';

const [engine] = testEngines();

/** Serves a file that every build downloads, so that a test can delay a build. */
const fetched = createServer((_request, response) => void mayBuild.then(() => response.end('ok')));
fetched.listen(0, '127.0.0.1').unref();
await once(fetched, 'listening');
let mayBuild = Promise.resolve();

/** Delays builds until the returned function is called. */
function holdBuilds(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  mayBuild = promise;
  return resolve;
}

const dockerfile = `FROM scratch
COPY busybox /bin/busybox
COPY . /app
ADD http://127.0.0.1:${(fetched.address() as AddressInfo).port}/fetched /fetched
CMD ["/bin/busybox", "sh", "/app/run.sh"]
`;

const script = `echo "serving $SESSION_BACKEND_KEY"
trap 'echo stopping; exit 0' TERM
/bin/busybox httpd -p "$PORT" -h /app/www
while :; do /bin/busybox sleep 60 & wait $!; done
`;

describe.skipIf(!engine)('berth dev', () => {
  const host = engine?.host ?? '';
  const at = { env: { DOCKER_HOST: host } };
  const build = { env: { DOCKER_HOST: host, DOCKER_BUILDKIT: '0' } };
  let folder: string;
  let project: string;
  let dev: DevProcess;
  let url: string;
  let port: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-dev-'));
    project = join(folder, 'My App');
    await mkdir(join(project, 'www'), { recursive: true });
    await mkdir(join(project, 'notes'));
    await copyFile((await staticBusybox()) ?? '', join(project, 'busybox'));
    write('Dockerfile', dockerfile);
    write('run.sh', script);
    write('www/index.html', 'first');
    write('.dockerignore', '# comment\n**/*.log\nnotes/**\n!notes/kept.txt\n');
    dev = start('--port', '0');
    url = (await dev.event('listening')).url;
    port = new URL(url).port;
    await dev.event('serving');
  });
  afterAll(async () => {
    fetched.close();
    await dev.end('SIGTERM');
    const { stdout } = await tryCommand('docker', ['images', '--format', '{{.Repository}}', 'berth-dev/*'], at);
    const own = stdout.split('\n').filter((name) => name.startsWith('berth-dev/my-app-'));
    if (own.length > 0) await tryCommand('docker', ['rmi', '--force', ...own], at);
    await rm(folder, { recursive: true, force: true });
  });

  function start(...args: string[]): DevProcess {
    return new DevProcess({ args, folder: project, dockerHost: host, caches: join(folder, 'caches') });
  }

  /** Synchronously: the file is empty for a moment, and a build must not begin then. */
  function write(path: string, text: string): void {
    writeFileSync(join(project, path), text);
  }

  async function post(path: string, body?: object, headers: Record<string, string> = {}): Promise<Response> {
    return await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
  }

  async function connect(path: string, body?: object): Promise<ConnectResponse> {
    const response = await post(`/v2/service/${path}/connect`, body);
    expect(response.status).toBe(200);
    return (await response.json()) as ConnectResponse;
  }

  async function get<T>(path: string): Promise<T> {
    return (await (await fetch(`${url}${path}`)).json()) as T;
  }

  async function textAt(address: string): Promise<string> {
    return await (await fetch(address)).text();
  }

  /** The beginning of an event stream, up to the end of its first event. */
  async function firstEvent(path: string): Promise<string> {
    const { body } = await fetch(`${url}${path}`);
    let text = '';
    for await (const chunk of body ?? []) {
      text += Buffer.from(chunk).toString();
      if (/^data: .*\n\n/m.test(text)) break;
    }
    return text;
  }

  /** Changes files, and waits until the image with the changes is served. */
  async function served(change: () => Promise<void>): Promise<void> {
    const after = dev.events.length;
    await change();
    await dev.event('serving', { after });
  }

  test('connects for any account and service, without an access token', async () => {
    const connected = await connect('any/thing', { key: 'room', user: 'ada', spawn: { tag: 'prod', cluster: 'eu' } });
    expect(connected).toEqual({
      backend_id: expect.stringMatching(/^[a-z0-9]+$/),
      url: `${url}/${connected.token}/`,
      token: expect.stringMatching(/^[\w-]+$/),
      secret_token: expect.stringMatching(/^[\w-]+$/),
      ready_url: '',
      status_url: `${url}/v2/backend/${connected.backend_id}/status`,
      status: 'scheduled',
      spawned: true,
    });
    expect(await textAt(connected.url)).toBe('first');
    expect(await (await fetch(connected.status_url)).json()).toMatchObject({ status: 'ready' });
    const other = await connect('other/service', { key: 'room' });
    expect([other.backend_id, other.spawned]).toEqual([connected.backend_id, false]);
    // Without a body, the connect has no key.
    expect((await connect('any/thing')).spawned).toBe(true);
    await dev.event('log', { matches: ({ line }) => line === 'serving room' });
    await dev.event('backend', { matches: ({ status, details }) => status === 'ready' && details === 'key "room"' });
  });

  test('serves the other endpoints: status stream, lists, logs, v1', async () => {
    const { backend_id: id } = await connect('any/thing', { key: 'room' });
    expect(await firstEvent(`/v2/backend/${id}/status/stream`)).toContain('data: {"status":"scheduled"');
    expect(await firstEvent(`/v2/backend/${id}/logs/stream`)).toContain('data: serving room');
    const { running_backends: running } = await get<{ running_backends: { id: string }[] }>('/v2/account/me/backends');
    expect(running.map((each) => each.id)).toContain(id);
    expect(await get('/v2/service/a/b')).toMatchObject({ account_name: 'dev', name: 'app' });
    expect(await get(`/v1/backend/${id}/status`)).toMatchObject({ state: 'Ready' });
    const spawned = (await (await post('/v1/user/a/service/b/spawn', {})).json()) as { url: string };
    expect(await textAt(spawned.url)).toBe('first');
    expect((await post('/v2/service/a/b/delete')).status).toBe(403);
    expect((await post('/v2/service/a/b/connect', { keys: 1 })).status).toBe(400);
    expect((await fetch(`${url}/v2/nothing`)).status).toBe(404);
    expect((await post('/v2/service/a/b/connect', { key: 'x'.repeat(1024 * 1024) })).status).toBe(413);
  });

  test('pages on the internet need an access token', async () => {
    const path = '/v2/service/a/b/connect';
    expect((await post(path, undefined, { 'sec-fetch-site': 'cross-site' })).status).toBe(401);
    const { stdout } = await tryCommand('curl', ['-s', '-H', 'Host: evil.example', '-X', 'POST', `${url}${path}`]);
    expect(stdout).toContain('"Unauthorized"');
  });

  test('after a change or addition of a file, connects wait for the new image, and backends of the old image are replaced', async () => {
    const before = await connect('a/b', { key: 'room' });
    expect(await textAt(before.url)).toBe('first');
    const after = dev.events.length;
    const build = holdBuilds();
    write('www/index.html', 'second');
    await dev.event('build-started', { after });
    // The old image is served until the new image is built.
    expect(await textAt(before.url)).toBe('first');
    const connecting = connect('a/b', { key: 'room' });
    await dev.event('connect-waits', { after });
    build();
    const connected = await connecting;
    expect(connected.spawned).toBe(true);
    expect(await textAt(connected.url)).toBe('second');
    const { backends } = await dev.event('replacing', { after });
    expect(backends).toContain(before.backend_id);
    await dev.event('log', {
      after,
      matches: (event) => event.line === 'stopping' && event.backend === before.backend_id,
    });

    await served(async () => write('www/more.html', 'added'));
    const added = await connect('a/b');
    expect(await textAt(`${added.url}more.html`)).toBe('added');
  });

  test('a removed file causes a build, simultaneous changes cause one build, and files in .dockerignore cause none', async () => {
    const after = dev.events.length;
    write('www/debug.log', 'ignored');
    write('notes/a.txt', 'ignored');
    await served(async () => await rm(join(project, 'www/more.html')));
    expect((await fetch(`${(await connect('a/b')).url}more.html`)).status).toBe(404);
    await served(async () => {
      // The server sees them together, however long a busy machine takes to write them.
      const thaw = await dev.freeze();
      write('notes/kept.txt', 'included');
      for (let i = 0; i < 20; i += 1) write(`www/${i}.html`, String(i));
      thaw();
    });
    const changed = dev.events.slice(after).filter((event) => event.event === 'changed');
    expect(changed).toEqual([
      { event: 'changed', path: 'www/more.html', more: 0 },
      { event: 'changed', path: expect.stringMatching(/^(?:notes\/kept\.txt|www\/\d+\.html)$/) as string, more: 20 },
    ]);
  });

  test('a failed build is reported with its output, and the previous image is served', async () => {
    const after = dev.events.length;
    write('Dockerfile', dockerfile.replace('COPY .', 'COPY missing-folder'));
    const { lines } = await dev.event('build-failed', { after });
    expect(lines.join('\n')).toContain('missing-folder');
    expect(await textAt((await connect('a/b')).url)).toBe('second');
    await served(async () => write('Dockerfile', `${dockerfile}ENV REPAIRED=1\n`));
  });

  test('after a kill, the next start on the port removes leftovers, and follows an image from a configuration file', async () => {
    const image = `berth-test/dev:${process.pid}`;
    const running = await connect('a/b', { key: 'left' });
    expect(await textAt(running.url)).toBe('second');
    const filter = ['--all', '--quiet', '--filter', `label=berth.node=dev-${port}`];
    await dev.end('SIGKILL');
    expect((await runCommand('docker', ['ps', ...filter], at)).trim()).not.toBe('');
    const { stdout } = await tryCommand('docker', ['images', '--quiet', 'berth-dev/*'], at);
    const [built = ''] = stdout.split('\n');
    await runCommand('docker', ['tag', built, image], at);
    // The flag overrides the port in the file.
    write('berth.config.json', JSON.stringify({ $schema: './schema.json', image, port: 1 }));
    dev = start('--port', port);
    await dev.event('serving');
    expect((await runCommand('docker', ['ps', ...filter], at)).trim()).toBe('');
    expect(await textAt((await connect('a/b')).url)).toBe('second');
    write('www/index.html', 'third');
    await served(async () => void (await runCommand('docker', ['build', '--quiet', '--tag', image, project], build)));
    expect(await textAt((await connect('a/b')).url)).toBe('third');
    expect(await dev.end('SIGTERM')).toBe(0);
    expect((await runCommand('docker', ['ps', ...filter], at)).trim()).toBe('');
    expect((await tryCommand('docker', ['network', 'inspect', `berth-dev-${port}`], at)).code).not.toBe(0);
    expect(await readdir(join(folder, 'caches/berth'))).toEqual([]);
    await runCommand('docker', ['rmi', image], at);
  });

  test('without a Dockerfile the server waits for it; a wrong configuration is an error; a stop aborts a build and waiting connects', async () => {
    await rm(join(project, 'berth.config.json'));
    await rm(join(project, 'Dockerfile'));
    dev = start('--port', port);
    await dev.event('build-failed');
    const rejected = await post('/v2/service/a/b/connect');
    expect([rejected.status, await rejected.text()]).toEqual([409, expect.stringContaining('"NoImage"')]);
    await served(async () => write('Dockerfile', dockerfile));
    expect(await textAt((await connect('a/b')).url)).toBe('third');
    await served(async () => write('berth.config.json', '{"prot": 1}'));
    const wrong = start('--port', '0');
    expect(await wrong.ended).toBe(1);
    await expect(wrong.event('listening')).rejects.toThrow('prot');
    const second = start('--port', port, '--config', 'missing.json');
    expect(await second.ended).toBe(1);
    const after = dev.events.length;
    const build = holdBuilds();
    write('www/index.html', 'fourth');
    await dev.event('build-started', { after });
    const held = post('/v2/service/a/b/connect');
    await dev.event('connect-waits', { after });
    expect(await dev.end('SIGTERM')).toBe(0);
    expect((await held).status).toBe(503);
    build();
  });

  test('a terminal shows backends, keys, connections and logs, adapts to its size, and is restored at the end', async () => {
    await rm(join(project, 'berth.config.json'), { force: true });
    await mkdir(join(project, 'www/cgi-bin'));
    await writeFile(join(project, 'www/cgi-bin/slow'), '#!/bin/busybox sh\nexec /bin/busybox sleep 600\n', {
      mode: 0o755,
    });
    const terminal = devInTerminal({
      args: ['--port', '0'],
      folder: project,
      dockerHost: host,
      caches: join(folder, 'caches'),
    });
    url = await terminal.shows(/^berth dev {2}(http:\S+) .* image [0-9a-f]{12}, after/);
    expect(terminal.isAlternate).toBe(true);
    const connected = await connect('a/b', { key: 'room' });
    expect(await textAt(connected.url)).toBe('fourth');
    await terminal.shows(/^BACKEND +KEY +STATUS +CONNECTIONS +FOR\n\w+ +room +ready +0 [^]*\| serving room$/m);
    const leaving = new AbortController();
    const held = fetch(`${connected.url}cgi-bin/slow`, { signal: leaving.signal }).catch(() => undefined);
    await terminal.shows(/room +ready +1 /);
    leaving.abort();
    await held;
    await terminal.shows(/room +ready +0 /);

    // Only the time changes, so only the time is written, without flicker.
    const seconds = Number(await terminal.shows(/room +ready +0 +(\d+) s/));
    const before = terminal.written.length;
    await terminal.shows(new RegExp(`room +ready +0 +(?!${seconds} s)\\d+ s`));
    expect(terminal.written.length - before).toBeLessThan(300);

    await terminal.resize(60, 12);
    await terminal.shows(/^─{60}$/m);
    terminal.press('\u001b[A');
    await terminal.shows(/^1 line below/m);
    terminal.press('\u001b[F');
    await terminal.shows(/^Ctrl-C: stop/m);
    // Without a shell that could resume it, the process ignores the stop key.
    terminal.press('\u001a');
    await expect.poll(() => terminal.written.split('\u001b[?1049h')).toHaveLength(3);
    await terminal.shows(/room +ready/);

    terminal.press('\u0003');
    expect(await terminal.ended).toBe(0);
    expect(terminal.isAlternate).toBe(false);
    const left = terminal.written.split('\u001b[?1049l').at(-1) ?? '';
    expect(left).toMatch(/Stopping 1 backend;[^]* icanon [^]* echo /);
    expect(terminal.written.lastIndexOf('\u001b[?25h')).toBeGreaterThan(terminal.written.lastIndexOf('\u001b[?25l'));
  });
});
