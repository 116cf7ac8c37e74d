import { expect, test } from 'vitest';
import { movedRoute, newRoute, tokenSource } from './route.ts';

const held = { service: 'acme/draw', key: 'room', fencingToken: 7 };

test('the token of a held key depends on service, key, user and auth, and not on the backend', () => {
  const of = (changes: object) => tokenSource({ backend: 'one', held, user: 'ada', auth: { role: 'x' }, ...changes });
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
  const sources = [
    tokenSource({ backend: 'b', held: { ...held, key: 'a","b' }, user: 'c' }),
    tokenSource({ backend: 'b', held: { ...held, key: 'a' }, user: 'b","c' }),
    tokenSource({ backend: 'b', held: { ...held, key: 'a' }, user: 'b' }),
    tokenSource({ backend: 'acme/draw', user: 'room' }),
    tokenSource({ backend: 'b', held: { ...held, key: 'null' } }),
    tokenSource({ backend: 'b', held: { ...held, key: 'null' }, user: 'null' }),
  ];
  expect(new Set(sources).size).toBe(sources.length);
});

test('the route of a held key moves to a newer holder, and never back', () => {
  const [older, newer] = [6, 7].map((fencingToken) =>
    newRoute('token', { backend: `backend-${fencingToken}`, held: { ...held, fencingToken } }),
  );
  if (!older || !newer) throw new Error('There are two');
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
