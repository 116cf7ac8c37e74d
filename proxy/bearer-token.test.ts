import { once } from 'node:events';
import { request as send } from 'node:http';
import { expect, test } from 'vitest';
import { hashToken } from '../model/access-token.ts';
import { newRoute, routes } from '../model/route.ts';
import { openFixture, spawnReady, startMirror, valuesOf } from './testing/fixture.ts';
import type { Fixture } from './testing/fixture.ts';
import { newToken } from './testing/token.ts';

const bearer = newToken();

/** A URL whose route requires the bearer token. */
async function guardedUrl(fixture: Fixture, at: Parameters<typeof spawnReady>[1]): Promise<string> {
  const { backend } = await spawnReady(fixture, at);
  const token = newToken();
  await fixture.store.insert(routes, newRoute(token, { backend, bearerHash: hashToken(bearer) }));
  return `${fixture.url}/${token}/`;
}

test.each(['', 'Bearer', 'Bearer wrong', `Basic ${bearer}`, bearer, `Bearer ${bearer}x`])(
  'a request with the authorization %j does not reach the backend',
  async (authorization) => {
    await using fixture = await openFixture();
    await using mirror = await startMirror();
    const url = await guardedUrl(fixture, mirror);
    const answer = await fetch(url, { headers: authorization === '' ? {} : { authorization } });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('x-berth-error')).toBe('unauthorized');
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect(mirror.connections()).toBe(0);
    // The request does not count as an open connection either.
    expect(fixture.reports.every((open) => Object.keys(open).length === 0)).toBe(true);
  },
);

test.each([`Bearer ${bearer}`, `bearer  ${bearer} `])(
  'a request with the token (%#) reaches the backend, without the token',
  async (authorization) => {
    await using fixture = await openFixture();
    await using mirror = await startMirror();
    const url = await guardedUrl(fixture, mirror);
    const answer = await fetch(url, { headers: { authorization, 'x-more': 'kept' } });
    expect(answer.status).toBe(200);
    const seen = (await answer.json()) as Parameters<typeof valuesOf>[0];
    expect(valuesOf(seen, 'x-more')).toEqual(['kept']);
    expect(valuesOf(seen, 'authorization')).toEqual([]);
    expect((await fetch(url)).status).toBe(401);
  },
);

test('an upgrade requires the token, too', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const url = await guardedUrl(fixture, mirror);
  const upgrade = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'eA==',
  };
  const request = send(url, { headers: upgrade }).end();
  const [answer] = await once(request, 'response');
  expect(answer.statusCode).toBe(401);
  answer.resume();
});

test('if the route requires no token, the authorization reaches the application', async () => {
  await using fixture = await openFixture();
  await using mirror = await startMirror();
  const { token } = await spawnReady(fixture, mirror);
  const answer = await fetch(`${fixture.url}/${token}/`, { headers: { authorization: 'Bearer its-own' } });
  expect(valuesOf((await answer.json()) as Parameters<typeof valuesOf>[0], 'authorization')).toEqual([
    'Bearer its-own',
  ]);
});
