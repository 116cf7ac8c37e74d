import { expect, test } from 'vitest';
import { ownTarget, spawns } from './own-paths.ts';

test.each([
  ['/v2/service/acme/draw/connect', '/v2/service/dev/app/connect'],
  ['/v2/service/acme/draw/staging/connect', '/v2/service/dev/app/connect'],
  [
    '/v2/service/acme/draw/backends?start=2026-01-01T00:00:00Z',
    '/v2/service/dev/app/backends?start=2026-01-01T00:00:00Z',
  ],
  ['/v2/service/acme/draw', '/v2/service/dev/app'],
  ['/v2/account/acme/backends', '/v2/account/dev/backends'],
  ['/v2/backend/abc/status', '/v2/backend/abc/status'],
  ['/v1/user/acme/service/draw/spawn', '/v1/user/dev/service/app/spawn'],
  ['/user/acme/service/draw/token', '/user/dev/service/app/token'],
  ['/user/acme/services', '/user/dev/services'],
  ['/service/acme/draw/image-name', '/service/dev/app/image-name'],
  ['/', '/'],
])('%s becomes %s', (target, own) => {
  expect(ownTarget(target)).toBe(own);
});

test.each([
  ['/v2/service/dev/app/connect', true],
  ['/v2/service/dev/app/connect?a=b', true],
  ['/v1/user/dev/service/app/spawn', true],
  ['/user/dev/service/app/spawn', true],
  ['/token/abc/spawn', true],
  ['/v2/service/dev/app/backends', false],
  ['/v1/user/dev/service/app/fetch', false],
])('%s waits for a build: %s', (target, isSpawn) => {
  expect(spawns(target)).toBe(isSpawn);
});
