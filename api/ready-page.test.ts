import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { end } from '../model/backend.ts';
import { becomeServing, connectPath, openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('the readiness page', () => {
  test('shows what is happening, redirects when ready, and says why it failed', async () => {
    const { body } = await api.post(connectPath);
    const path = new URL(body.ready_url).pathname;
    const waiting = await api.call('GET', path);
    expect([waiting.status, waiting.body]).toEqual([200, expect.stringContaining('Waiting for a place')]);
    expect(waiting.headers.get('content-security-policy')).toContain("default-src 'none'");
    await api.change(body.backend_id, becomeServing);
    const ready = await api.call('GET', path);
    expect([ready.status, ready.headers.get('location')]).toEqual([303, body.url]);

    const failing = (await api.post(connectPath)).body;
    const failure = 'Image <b>not</b> found';
    await api.change(failing.backend_id, (current) =>
      end(current, { kind: null, reason: null, exitCode: null, failure }, new Date()),
    );
    const failed = await api.call('GET', new URL(failing.ready_url).pathname);
    expect([failed.status, failed.body]).toEqual([410, expect.stringContaining('Image &#60;b&#62;not')]);
  });

  test('belongs to one token of one backend', async () => {
    const [one, other] = [(await api.post(connectPath)).body, (await api.post(connectPath)).body];
    expect((await api.call('GET', `/ready/${one.backend_id}/${other.token}/`)).status).toBe(404);
    expect((await api.call('GET', `/ready/${one.backend_id}/nonsense/`)).status).toBe(404);
  });
});
