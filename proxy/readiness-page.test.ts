import { expect, test } from 'vitest';
import { labelOfToken } from '../model/session-host.ts';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { isNavigation, readinessPageAfterMs } from './readiness-page.ts';
import { makeReady, openFixture, spawn, startMirror, until } from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';

const apiUrl = 'https://api.example';
const page = { accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' };

/** Requests a session by path or by host, without following redirects. */
function ask({ port }: Fixture, path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  send({ port, host: '127.0.0.1', path, headers, agent: false }).once('response', resolve).once('error', reject).end();
  return promise;
}

test.each([
  ['a browser', { ...page, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }, true],
  ['a browser that fills a frame', { ...page, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }, true],
  ['an old browser', page, true],
  ['a script', { ...page, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }, false],
  ['an object in a page', { ...page, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'object' }, false],
  ['curl', { accept: '*/*' }, false],
  ['a program without Accept', {}, false],
  ['a WebSocket', { ...page, upgrade: 'websocket' }, false],
])('%s navigates: %s', (_name, headers, expected) => {
  expect(isNavigation({ method: 'GET', headers })).toBe(expected);
  expect(isNavigation({ method: 'POST', headers })).toBe(false);
});

test('after a second, a browser is redirected to the readiness page, with its path; a program still waits', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, apiUrl, sessionDomain: 's.example' });
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  const label = labelOfToken(token);
  const answers: Promise<IncomingMessage>[] = [
    ask(fixture, `/${token}/a/b?c=d`, { ...page, host: 'x' }),
    ask(fixture, '/', { ...page, host: `${label}.s.example` }),
  ];
  const program = ask(fixture, `/${token}/`, { host: 'x' });
  await until(async () => /open_connections 3$/m.test(await fixture.metrics.metrics()));
  let redirected = 0;
  for (const answer of answers) void answer.then(() => (redirected += 1));
  await clock.advance(readinessPageAfterMs - 1);
  expect(redirected).toBe(0);
  await clock.advance(1);
  const [byPath, byHost] = await Promise.all(answers);
  expect([byPath?.statusCode, byPath?.headers]).toMatchObject([
    303,
    {
      location: `${apiUrl}/ready/${backend}/${token}/?path=%2Fa%2Fb%3Fc%3Dd`,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    },
  ]);
  expect(byHost?.headers.location).toBe(`${apiUrl}/ready/${backend}/${label}/`);
  await makeReady(fixture, backend, mirror);
  expect((await program).statusCode).toBe(200);
  // Once the backend is ready, the application answers.
  expect((await ask(fixture, `/${token}/`, { ...page, host: 'x' })).statusCode).toBe(200);
});

test('a browser gets no readiness page if the backend becomes ready soon', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, apiUrl });
  await using mirror = await startMirror();
  const { token, backend } = await spawn(fixture);
  const answer = ask(fixture, `/${token}/`, { ...page, host: 'x' });
  await until(() => fixture.reports.at(-1)?.[backend] === 1);
  await clock.advance(readinessPageAfterMs / 2);
  await makeReady(fixture, backend, mirror);
  expect((await answer).statusCode).toBe(200);
});

test('without the URL of the API, a browser waits like other clients', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock, hold: { ms: 3_000, requests: 1 } });
  const { token, backend } = await spawn(fixture);
  const answer = ask(fixture, `/${token}/`, { ...page, host: 'x' });
  await until(() => fixture.reports.at(-1)?.[backend] === 1);
  await clock.advance(3_000);
  const { statusCode, headers } = await answer;
  expect([statusCode, headers['x-berth-error'], headers.location]).toEqual([503, 'starting', undefined]);
});
