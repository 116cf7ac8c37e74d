import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  advance,
  assign,
  backends,
  withStartProblem,
  beginStop,
  becomeTerminated,
  requestStop,
} from '../../model/backend.ts';
import { pullProgressed } from '../../contract/messages.ts';
import { linesOf } from '../../core/text/lines.ts';
import type { Backend } from '../../model/backend.ts';
import { becomeServing, connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('the readiness page', () => {
  test('shows the progress, redirects when ready, and shows the reason of a failure', async () => {
    const { body } = await api.post(connectPath);
    const path = new URL(body.ready_url).pathname;
    const waiting = await api.call('GET', path);
    expect([waiting.status, waiting.body]).toEqual([200, expect.stringContaining('Waiting for capacity')]);
    expect(waiting.headers.get('content-security-policy')).toContain("default-src 'none'");
    await api.change(body.backend_id, becomeServing);
    const ready = await api.call('GET', path);
    expect([ready.status, ready.headers.get('location')]).toEqual([303, body.url]);

    const failing = (await api.post(connectPath)).body;
    const failure = 'Image <b>not</b> found';
    await api.change(failing.backend_id, (current) =>
      becomeTerminated(current, { kind: null, reason: null, exitCode: null, failure }, new Date()),
    );
    const failed = await api.call('GET', new URL(failing.ready_url).pathname);
    expect([failed.status, failed.body]).toEqual([410, expect.stringContaining('Image &#60;b&#62;not')]);
  });

  test('leads to the path that a browser requested, if it is below the URL of the session', async () => {
    const { body } = await api.post(connectPath);
    const { pathname } = new URL(body.ready_url);
    const waiting = await api.call('GET', `${pathname}?path=${encodeURIComponent('/a/b?c=d&e="f"')}`);
    expect(waiting.body).toContain(`data-url="${body.url}a/b?c=d&#38;e=&#34;f&#34;"`);
    const hostile = await api.call('GET', `${pathname}?path=${encodeURIComponent('/../other/')}`);
    expect(hostile.body).toContain(`data-url="${body.url}"`);
    await api.change(body.backend_id, becomeServing);
    const ready = await api.call('GET', `${pathname}?path=%2Fa%3Fb`);
    expect([ready.status, ready.headers.get('location')]).toEqual([303, `${body.url}a?b`]);
  });

  test.each([
    ['hard', 'startuptimeout', 137, 'The application did not become ready in time.'],
    ['soft', 'external', 137, 'It was stopped before it was ready.'],
    [null, 'lost', null, 'The machine on which it was started was lost.'],
    [null, null, 3, 'The container exited with code 3 before it was ready.'],
  ] as const)('shows why a backend ended before it was ready: %s %s %s', async (kind, reason, exitCode, text) => {
    const { backend_id: id, ready_url: url } = (await api.post(connectPath)).body;
    await api.change(id, (current) =>
      becomeTerminated(assign(current, 'node-1'), { kind, reason, exitCode }, new Date()),
    );
    const page = await api.call('GET', new URL(url).pathname);
    expect(page.status).toBe(410);
    expect(page.body).toContain('The session could not start');
    expect(page.body).toContain(text);
    expect(page.body).not.toContain('code 137');
  });

  test('shows that a session is being stopped, and waits for the end', async () => {
    for (const isReady of [true, false]) {
      const { backend_id: id, ready_url: url } = (await api.post(connectPath)).body;
      const begin = (current: Backend) => beginStop(requestStop(current, 'soft', 'external', new Date()), new Date());
      await api.change(id, (current) => begin(isReady ? becomeServing(current) : assign(current, 'node-1')));
      const page = await api.call('GET', new URL(url).pathname);
      expect(page.status).toBe(200);
      expect(page.body).toContain('The session is being stopped');
      expect(page.body).not.toContain('Starting your session');
      // It reloads when the backend has ended, not with each status while it is ending.
      expect(page.body).not.toContain('/terminat/');
    }
  });

  test('shows the progress of the pull, and streams each step until the backend is ready', async () => {
    const { backend_id: id, ready_url: url } = (await api.post(connectPath)).body;
    await api.change(id, (current) => advance(assign(current, 'node-1'), 'loading', new Date()));
    const pulled = { layers: 7, layersDone: 3, downloadedBytes: 5 * 1024 * 1024, totalBytes: 20 * 1024 * 1024 };
    await api.bus.publish(pullProgressed, { backend: id, progress: pulled });
    const page = await api.call('GET', new URL(url).pathname);
    expect(page.body).toContain('3 of 7 layers, 5 MiB of 20 MiB');
    expect(page.body).toContain('value="0.25"');

    const response = await fetch(`${url}events`);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const events = eventsOf(response);
    const next = async () => (await events.next()).value;
    expect(await next()).toMatchObject({ status: 'loading', share: 0.25 });
    await api.bus.publish(pullProgressed, { backend: id, progress: { ...pulled, downloadedBytes: pulled.totalBytes } });
    expect(await next()).toMatchObject({ detail: 'Fetching the image… 3 of 7 layers, 20 MiB of 20 MiB', share: 1 });
    await api.change(id, (current) => advance(current, 'starting', new Date()));
    expect(await next()).toEqual({
      status: 'starting',
      title: 'Starting your session',
      detail: 'Starting the container…',
      busy: true,
    });
    await api.change(id, (current) => advance(current, 'waiting', new Date()));
    expect(await next()).toMatchObject({ status: 'waiting' });
    await api.change(id, (current) => withStartProblem(current, 'listens on 8888, expected 8080'));
    expect(await next()).toMatchObject({ status: 'waiting', detail: expect.stringContaining('expected 8080') });
    await api.change(id, becomeServing);
    expect(await next()).toMatchObject({ status: 'ready' });
    await api.change(id, (current) => becomeTerminated(current, { kind: null, reason: null, exitCode: 0 }, new Date()));
    expect(await next()).toMatchObject({ status: 'terminated', title: 'This session has ended' });
    expect((await events.next()).done).toBe(true);
  });

  test('shows the port on which the container listens instead of the expected one, as the status does', async () => {
    const { backend_id: id, ready_url: url, status_url: statusUrl } = (await api.post(connectPath)).body;
    const problem = 'listens on 8888, expected 8080';
    await api.change(id, (current) =>
      withStartProblem(advance(assign(current, 'node-1'), 'waiting', new Date()), problem),
    );
    expect((await api.call('GET', new URL(url).pathname)).body).toContain(`The container ${problem}.`);
    const { pathname } = new URL(statusUrl);
    expect((await api.call('GET', pathname)).body).toMatchObject({ problem: `The container ${problem}` });
    const failure = `The container did not become ready within 8 seconds: it ${problem}`;
    const ended = { kind: 'hard', reason: 'startuptimeout', exitCode: 137, failure } as const;
    await api.change(id, (current) => becomeTerminated(current, ended, new Date()));
    expect((await api.call('GET', pathname)).body).toMatchObject({ status: 'terminated', problem: failure });
    const { body: backend } = await api.get(`/v2/backend/${id}`);
    expect(backend.statuses.at(-1)).toMatchObject({ problem: failure, exit_code: 137 });
    await api.change(id, (current) => withStartProblem(current, 'never'));
    expect(await api.store.get(backends, id)).not.toHaveProperty('startProblem');
  });

  test('its events are limited to a token and its backend', async () => {
    const [one, other] = [(await api.post(connectPath)).body, (await api.post(connectPath)).body];
    expect((await api.call('GET', `/ready/${one.backend_id}/${other.token}/events`)).status).toBe(404);
  });

  test('is limited to a token and its backend', async () => {
    const [one, other] = [(await api.post(connectPath)).body, (await api.post(connectPath)).body];
    expect((await api.call('GET', `/ready/${one.backend_id}/${other.token}/`)).status).toBe(404);
    expect((await api.call('GET', `/ready/${one.backend_id}/nonsense/`)).status).toBe(404);
  });

  test('whose path cannot be decoded is a bad request, not an error that would be logged with the token', async () => {
    const { ready_url: url } = (await api.post(connectPath)).body;
    const answer = await api.call('GET', `${new URL(url).pathname.replace(/\/$/, '')}%ff`);
    expect([answer.status, answer.body]).toEqual([400, { error: expect.objectContaining({ code: 'BadRequest' }) }]);
  });
});

async function* eventsOf({ body }: Response): AsyncGenerator {
  if (!body) throw new Error('The answer has no body');
  for await (const line of linesOf(Readable.fromWeb(body)))
    if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length));
}
