import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backends, beginStop } from '../model/backend.ts';
import { becomeServing, connectPath, openTestApi } from './testing/test-api.ts';
import type { TestApi } from './testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

describe('backends that are stopped', () => {
  test('end at once if no node has claimed them, and cannot be stopped twice', async () => {
    const { body } = await api.post(connectPath);
    expect((await api.post(`/v2/backend/${body.backend_id}/terminate`)).body).toEqual({ status: 'ok' });
    const after = await api.call('GET', `/v2/backend/${body.backend_id}/status`);
    expect(after.body).toMatchObject({
      status: 'terminated',
      termination_kind: 'soft',
      termination_reason: 'external',
    });
    const again = await api.post(`/v2/backend/${body.backend_id}/terminate`);
    expect([again.status, again.body.error.code]).toEqual([409, 'BackendNotRunning']);
  });

  test('on a node return "ok" as soon as their node has begun to stop them', async () => {
    const { body } = await api.post(connectPath);
    await api.change(body.backend_id, becomeServing);
    const answered = api.post(`/v2/backend/${body.backend_id}/terminate`, { hard: true });
    await expect.poll(async () => (await api.store.get(backends, body.backend_id))?.stop?.kind).toBe('hard');
    await api.change(body.backend_id, (current) => beginStop(current, new Date()));
    expect((await answered).body).toEqual({ status: 'ok' });
  });
});
