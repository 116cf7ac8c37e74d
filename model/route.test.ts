import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { newBackendId } from './ids.ts';
import { connectionToken, connectionTokenPattern, movedRoute, newRoute, routeId } from './route.ts';
import type { RoutedUser } from './route.ts';

const tokenOf = (routed: RoutedUser) =>
  connectionToken((source) => createHash('sha256').update(source).digest('base64url'), routed);

const held = { service: 'acme/draw', key: 'room', fencingToken: 7 };

test('the token of a held key depends on service, key, user and auth, and not on the backend', () => {
  const of = (changes: object) => tokenOf({ backend: 'one', held, user: 'ada', auth: { role: 'x' }, ...changes });
  const same = [of({}), of({ backend: 'two' }), of({ held: { ...held, fencingToken: 8 } })];
  const others = [
    of({ user: 'grace' }),
    of({ user: undefined }),
    of({ auth: { role: 'y' } }),
    of({ auth: undefined }),
    of({ held: { ...held, key: 'other' } }),
    of({ held: { ...held, service: 'acme/other' } }),
    of({ held: undefined }),
  ];
  expect(new Set(same).size).toBe(1);
  expect(new Set([...same, ...others]).size).toBe(1 + others.length);
});

test('a key cannot be chosen so that its tokens are those of another key, user or backend', () => {
  const tokens = [
    tokenOf({ backend: 'b', held: { ...held, key: 'a","b' }, user: 'c' }),
    tokenOf({ backend: 'b', held: { ...held, key: 'a' }, user: 'b","c' }),
    tokenOf({ backend: 'b', held: { ...held, key: 'a' }, user: 'b' }),
    tokenOf({ backend: 'acme/draw', user: 'room' }),
    tokenOf({ backend: 'b', held: { ...held, key: 'null' } }),
    tokenOf({ backend: 'b', held: { ...held, key: 'null' }, user: 'null' }),
  ];
  expect(new Set(tokens).size).toBe(tokens.length);
});

test('the route of a held key moves to a newer holder, and never back', () => {
  const [older, newer] = [6, 7].map((fencingToken) =>
    newRoute('token', { backend: `backend-${fencingToken}`, held: { ...held, fencingToken } }),
  );
  if (!older || !newer) throw new Error('A route is missing');
  const now = new Date(5);
  expect(movedRoute(undefined, older, now)).toBe(older);
  expect(movedRoute(older, newer, now)).toEqual({ ...newer, movedAt: now });
  expect(movedRoute(newer, older, now)).toBe(newer);
  expect(movedRoute(newer, { ...newer }, now)).toBe(newer);
});

test('the route of a backend stays as it is', () => {
  const route = newRoute('token', { backend: 'one' });
  expect(route).not.toHaveProperty('fencingToken');
  expect(movedRoute(route, { ...route }, new Date())).toBe(route);
});

test('the routes of new backends are next to each other, however many old ones there are', () => {
  const ids = (at: string) =>
    ['ada', 'grace'].map((user) => {
      const token = tokenOf({ backend: newBackendId(new Date(at)), user });
      expect(token).toMatch(connectionTokenPattern);
      return routeId(token);
    });
  const [early, late] = [ids('2026-11-01T00:00:00Z'), ids('2026-11-01T00:00:01Z')];
  expect([...late, ...early].toSorted()).toStrictEqual([...early.toSorted(), ...late.toSorted()]);
});
