import { expect, test } from 'vitest';
import { AccessLogSample, traceOf } from './access-log.ts';
import { openFixture, spawnReady, startMirror, valuesOf } from './testing/fixture.ts';
import type { Seen } from './testing/fixture.ts';

const fine = { status: 200, error: undefined };

test.each([
  [100, 1_000],
  [25, 250],
  [1, 10],
  [0, 0],
])('a sample of %i %% logs %i of a thousand requests', (percent, expected) => {
  const sample = new AccessLogSample(percent);
  expect(Array.from({ length: 1_000 }, () => sample.includes(fine)).filter(Boolean)).toHaveLength(expected);
});

test.each([
  ['a failure of the application', { status: 502, error: undefined }],
  ['an error of the proxy', { status: 410, error: 'gone' as const }],
  ['a broken connection', { status: undefined, error: undefined }],
])('%s is always logged', (_name, outcome) => {
  const sample = new AccessLogSample(0);
  expect([sample.includes(fine), sample.includes(outcome), sample.includes(outcome)]).toEqual([false, true, true]);
});

const trace = '0af7651916cd43dd8448eb211c80319c';

test.each([
  [`00-${trace}-b7ad6b7169203331-01`, trace],
  [`cc-${trace}-b7ad6b7169203331-01-what-comes-later`, trace],
  [`ff-${trace}-b7ad6b7169203331-01`, undefined],
  [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`, undefined],
  [`00-${trace}-${'0'.repeat(16)}-01`, undefined],
  [`00-${trace.toUpperCase()}-b7ad6b7169203331-01`, undefined],
  ['anything', undefined],
  [undefined, undefined],
])('the trace of %s is %s', (header, expected) => {
  expect(traceOf(header)).toBe(expected);
});

test('trace headers and the request ID of a proxy in front reach the backend unchanged', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01`, tracestate: 'a=1,b=2', 'x-request-id': 'one' };
  const seen = (await (await fetch(`${fixture.url}/${token}/`, { headers })).json()) as Seen;
  for (const [name, value] of Object.entries(headers)) expect(valuesOf(seen, name)).toEqual([value]);
});
