import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';

let api: TestApi;
beforeAll(async () => void (api = await openTestApi()));
afterAll(async () => await api[Symbol.asyncDispose]());

test('the OpenAPI document is the committed one, and needs no token', async () => {
  const { status, headers, body } = await api.call('GET', '/openapi.json');
  expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
  expect(body).toEqual(JSON.parse(await readFile(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8')));
});

test('the page and all that it loads come from this API, under a strict policy', async () => {
  const page = await api.call('GET', '/docs');
  expect(page.headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self'; /,
  );
  expect(page.body).not.toMatch(/<script>|style=|https?:/);
  const loaded = Array.from((page.body as string).matchAll(/(?:src|href)="(\/[^"]+)"/g), ([, path = '']) => path);
  expect(loaded.toSorted()).toEqual([
    '/docs/page.js',
    '/docs/swagger-ui-bundle.js',
    '/docs/swagger-ui.css',
    '/openapi.json',
  ]);
  for (const path of loaded) {
    const { status, headers } = await api.call('GET', path);
    expect([path, status, headers.get('x-content-type-options')]).toEqual([path, 200, 'nosniff']);
  }
  const types = await Promise.all(
    loaded.map(async (path) => (await api.call('GET', path)).headers.get('content-type')),
  );
  expect(new Set(types)).toEqual(
    new Set(['text/javascript; charset=utf-8', 'text/css; charset=utf-8', 'application/json']),
  );
});

test('Swagger UI itself loads no font, image or style from another host', async () => {
  const css = (await api.call('GET', '/docs/swagger-ui.css')).body as string;
  const targets = Array.from(css.matchAll(/url\(\s*["']?([^)]{0,40})/g), ([, target = '']) => target);
  expect(targets.length).toBeGreaterThan(0);
  expect(targets.filter((target) => !target.startsWith('data:'))).toEqual([]);
  expect(/@import|@font-face/.exec(css)?.[0]).toBeUndefined();
});

test('browsers check for a new version of the page, and do not load the same version again', async () => {
  const { headers } = await api.call('GET', '/docs/swagger-ui-bundle.js');
  expect(headers.get('cache-control')).toBe('no-cache');
  const again = await api.call('GET', '/docs/swagger-ui-bundle.js', {
    // `fetch` would add "no-cache", unless the request says something else.
    headers: { 'if-modified-since': headers.get('last-modified') ?? '', 'cache-control': 'max-age=0', pragma: '' },
  });
  expect(again.status).toBe(304);
});

test.each(['/docs/package.json', '/docs/..%2freference.ts', '/docs/%2e%2e/reference.ts'])(
  '%s does not exist',
  async (path) => {
    expect((await api.call('GET', path)).status).toBe(404);
  },
);
