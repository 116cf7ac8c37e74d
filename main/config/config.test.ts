import { expect, test } from 'vitest';
import { keptLogSeconds } from './retention-settings.ts';
import { loadConfig } from './config.ts';

test.each([
  'redis://:secret@redis:6379/1',
  'rediss://user:secret@redis?ca=/etc/ca.pem',
  'redis+unix:///run/redis.sock',
  'redis+sentinel://:secret@one,two:26380/name',
  'rediss+sentinel://:secret@one,two/name?sentinel_password=other',
  'redis+cluster://one,two',
  'rediss+cluster://:secret@one,two',
])('%s is a valid URL of a Redis', (url) => {
  expect(loadConfig({ BERTH_REDIS_URL: url }).redisUrl).toBe(url);
});

test('problems with a Redis URL are reported with all other problems, without the secrets in it', () => {
  const load = () => loadConfig({ BERTH_REDIS_URL: 'redis+sentinel://:secret@one,two', BERTH_API_PORT: 'x' });
  expect(load).toThrow(
    /BERTH_REDIS_URL: Name the master: [^]*BERTH_API_PORT|BERTH_API_PORT[^]*BERTH_REDIS_URL: Name the master: /,
  );
  expect(load).not.toThrow('secret');
  expect(() => loadConfig({ BERTH_REDIS_URL: 'unix:///run/redis.sock' })).toThrow('BERTH_REDIS_URL: ');
});

test('logs are kept no longer than their backends', () => {
  expect(keptLogSeconds(loadConfig({}))).toBe(7 * 24 * 3600);
  expect(keptLogSeconds(loadConfig({ BERTH_BACKEND_HISTORY_SECONDS: '7200' }))).toBe(7200);
});

test('a limit lowers the default, so that connects that set nothing do not exceed it', () => {
  const limits = {
    BERTH_MAX_IDLE_SECONDS_LIMIT: '120',
    BERTH_LIFETIME_SECONDS_LIMIT: '3600',
    BERTH_DEFAULT_LIFETIME_SECONDS: '7200',
    BERTH_MEMORY_BYTES_LIMIT: String(512 * 1024 ** 2),
  };
  expect(loadConfig(limits)).toMatchObject({
    defaultMaxIdleSeconds: 120,
    defaultLifetimeSeconds: 3600,
    defaultMemoryBytes: 512 * 1024 ** 2,
  });
  expect(loadConfig({})).toMatchObject({ defaultMaxIdleSeconds: 300, defaultLifetimeSeconds: 0 });
});

test.each(['localhost', 'sessions.example.com', 'a-b.example', 'xn--bcher-kva.example'])(
  '%s is a valid session domain',
  (domain) => {
    expect(loadConfig({ BERTH_SESSION_DOMAIN: domain, BERTH_URL_FORM: 'host' }).sessionDomain).toBe(domain);
  },
);

test.each([
  '*.example.com',
  'https://example.com',
  'Example.com',
  'example.com.',
  '-a.example',
  'a..b',
  'a:80',
  'bücher.example',
])('%s is not a valid session domain', (domain) => {
  expect(() => loadConfig({ BERTH_SESSION_DOMAIN: domain })).toThrow('BERTH_SESSION_DOMAIN: Use a domain name');
});

test('reports settings that others need together with misspelt and invalid ones', () => {
  const given = { BERTH_STORE: 'mongodb', BERTH_BUS: 'redis', BERTH_REDIS_URL: 'localhost', BERTH_STOR: 'x' };
  expect(() => loadConfig(given)).toThrow(
    /^The configuration has problems:\n {2}BERTH_REDIS_URL: A Redis URL looks like .*\n {2}BERTH_MONGODB_URL: Needed for BERTH_STORE=mongodb\n {2}BERTH_STOR: There is no such setting$/,
  );
});

test('the host form needs a session domain', () => {
  expect(() => loadConfig({ BERTH_URL_FORM: 'host' })).toThrow('BERTH_SESSION_DOMAIN: Needed for BERTH_URL_FORM=host');
  expect(loadConfig({ BERTH_URL_FORM: 'path' }).urlForm).toBe('path');
});
