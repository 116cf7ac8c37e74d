import { expect, test } from 'vitest';
import { becomeTerminated } from '../../model/backend.ts';
import { becomeServing, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

const forms = [
  { form: 'v1', prefix: '/v1' },
  { form: 'the earliest form', prefix: '' },
] as const;

const streamHeaders = { accept: 'text/event-stream' };

async function spawned(api: TestApi): Promise<string> {
  return (await api.post('/v2/service/acme/draw/connect')).body.backend_id;
}

/** The events of a stream that has ended. */
function eventsOf(text: string): { id: number; data: { state: string; time: string } }[] {
  return text
    .split('\n\n')
    .filter((block) => block.includes('data: '))
    .map((block) => ({
      id: Number(/^id: (.*)$/m.exec(block)?.[1]),
      data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? ''),
    }));
}

test.each(forms)('$form streams each state once, and ends with the backend', async ({ prefix }) => {
  await using api = await openTestApi();
  const id = await spawned(api);
  const path = `${prefix}/backend/${id}/status/stream`;
  const stream = api.call('GET', path, { headers: streamHeaders });
  await api.change(id, becomeServing);
  await api.change(id, (backend) =>
    becomeTerminated(backend, { kind: 'soft', reason: 'swept', exitCode: 0 }, new Date()),
  );
  const { status, headers, body } = await stream;
  expect([status, headers.get('content-type'), headers.get('access-control-allow-origin')]).toEqual([
    200,
    'text/event-stream',
    '*',
  ]);
  const states = eventsOf(body).map(({ data }) => data.state);
  expect(states.at(-1)).toBe('Swept');
  expect(states).toEqual([...new Set(states)]);
  const replayed = eventsOf((await api.call('GET', path, { headers: streamHeaders })).body);
  expect(replayed.map(({ data }) => data.state)).toEqual(['Loading', 'Starting', 'Ready', 'Swept']);
  expect(Object.keys(replayed[0]?.data ?? {})).toEqual(['state', 'time']);

  const seen = replayed[1]?.id;
  const resumed = await api.call('GET', path, { headers: { ...streamHeaders, 'last-event-id': String(seen) } });
  expect(eventsOf(resumed.body)).toEqual(replayed.slice(2));
  const last = { ...streamHeaders, 'last-event-id': String(replayed.at(-1)?.id) };
  expect((await api.call('GET', path, { headers: last })).status).toBe(204);
});

test('the earliest form streams only to clients that accept an event stream, v1 to all clients', async () => {
  await using api = await openTestApi();
  const id = await spawned(api);
  await api.post(`/backend/${id}/terminate`);
  for (const path of [`/backend/${id}/status/stream`, `/backend/${id}/logs`]) {
    const headers = { authorization: `Bearer ${api.token}`, accept: 'application/json' };
    const refused = await api.call('GET', path, { headers });
    expect([refused.status, refused.body.error.code]).toEqual([406, 'NotAcceptable']);
    expect((await api.call('GET', path, { headers: { ...headers, ...streamHeaders } })).status).toBe(200);
    expect((await api.call('GET', `/v1${path}`, { headers })).status).toBe(200);
  }
});

test.each(forms)('the log in $form needs the scope, and a backend of the account', async ({ prefix }) => {
  await using api = await openTestApi();
  const id = await spawned(api);
  const path = `${prefix}/backend/${id}/logs`;
  const codeFor = async (token: string) =>
    (await api.call('GET', path, { headers: { ...streamHeaders, authorization: `Bearer ${token}` } })).body.error.code;
  expect(await codeFor(await api.tokenFor('acme', ['connect']))).toBe('Forbidden');
  expect(await codeFor(await api.tokenFor('other', ['read']))).toBe('BackendNotFound');
  expect(await codeFor('')).toBe('Unauthorized');
});

test.each(forms)('a backend that does not exist has no state in $form', async ({ prefix }) => {
  await using api = await openTestApi();
  for (const path of ['status', 'status/stream']) {
    const { status, body } = await api.call('GET', `${prefix}/backend/nope/${path}`, { headers: streamHeaders });
    expect([status, body.error.code]).toEqual([404, 'BackendNotFound']);
  }
});

test('a HEAD request gets the head of an open stream', async () => {
  await using api = await openTestApi();
  const id = await spawned(api);
  const headers = { ...streamHeaders, authorization: `Bearer ${api.token}` };
  const streams = [
    `/v2/backend/${id}/status/stream`,
    `/v1/backend/${id}/status/stream`,
    `/backend/${id}/status/stream`,
  ];
  for (const path of [...streams, `/v2/backend/${id}/logs/stream`, `/v1/backend/${id}/logs`]) {
    const head = await api.call('HEAD', path, { headers });
    expect([path, head.status, head.headers.get('content-type')]).toEqual([path, 200, 'text/event-stream']);
  }
  expect((await fetch(`${api.base}/v2/backend/nope/status/stream`, { method: 'HEAD' })).status).toBe(404);
});
