import { describe, expect, test } from 'vitest';
import { RedisUrlError, parseRedisUrl } from './redis-url.ts';

describe('A Redis URL names', () => {
  test.each([
    ['redis://localhost', { kind: 'server', address: { host: 'localhost', port: 6379 }, database: 0, tls: false }],
    ['redis://[::1]:7000/3', { kind: 'server', address: { host: '::1', port: 7000 }, database: 3, tls: false }],
    [
      'rediss://redis.example/',
      { kind: 'server', address: { host: 'redis.example', port: 6379 }, database: 0, tls: true },
    ],
    ['redis+unix:///run/redis.sock', { kind: 'socket', path: '/run/redis.sock', database: 0, tls: false }],
    [
      'redis+unix://:p@/run/redis.sock?db=2',
      { kind: 'socket', path: '/run/redis.sock', database: 2, password: 'p', tls: false },
    ],
    [
      'redis+cluster://a:7001,b,[::1]:7003',
      {
        kind: 'cluster',
        nodes: [
          { host: 'a', port: 7001 },
          { host: 'b', port: 6379 },
          { host: '::1', port: 7003 },
        ],
        database: 0,
        tls: false,
      },
    ],
    [
      'rediss+sentinel://user:secret@a,b:26380/main/1?sentinel_password=other&ca=/etc/ca.pem',
      {
        kind: 'sentinel',
        sentinels: [
          { host: 'a', port: 26_379 },
          { host: 'b', port: 26_380 },
        ],
        master: 'main',
        username: 'user',
        password: 'secret',
        sentinelPassword: 'other',
        database: 1,
        tls: true,
        caFile: '/etc/ca.pem',
      },
    ],
  ])('%s', (url, target) => {
    const { display, ...rest } = parseRedisUrl(url);
    expect(rest).toStrictEqual(target);
    expect(display).not.toMatch(/secret|other/);
  });

  test('user and password, percent-encoded', () => {
    expect(parseRedisUrl('redis://:p%40ss%2F%3A:x@h')).toMatchObject({ password: 'p@ss/::x' });
    expect(parseRedisUrl('redis://:p@ss@h')).toMatchObject({ password: 'p@ss', address: { host: 'h' } });
    expect(parseRedisUrl('redis://ada:pw@h')).toMatchObject({ username: 'ada', password: 'pw', display: 'redis://h' });
    expect(parseRedisUrl('redis://:@h')).not.toHaveProperty('password');
  });
});

describe('An invalid Redis URL is rejected with a message without its secrets', () => {
  test.each([
    ['localhost:6379', 'A Redis URL looks like redis://host:6379'],
    ['http://:secret@localhost', 'begins with redis: or rediss:, not http:'],
    ['redis+cache://:secret@localhost', 'not redis+cache'],
    ['redis://:secret@', 'Host 1 is not an address'],
    ['redis://:secret@h:0', 'Host 1 is not an address'],
    ['redis://:secret@h:65536', 'Host 1 is not an address'],
    ['redis://:secret@h:port', 'Host 1 is not an address'],
    ['redis://:secret@::1:6379', '[IPv6]:port'],
    ['redis://:se/secret@h', 'write / as %2F'],
    ['redis+cluster://:secret@a,b:c', 'Host 2 is not an address'],
    ['redis://:secret@a,b', 'redis+sentinel or redis+cluster'],
    ['redis://:secret@h/main', 'A Redis database is a number'],
    ['redis://secret@h', 'A user needs a password'],
    ['redis://:secret%@h', 'write % as %25'],
    ['redis://:secret@h?ca=/ca.pem', '?ca= needs TLS'],
    ['rediss://:secret@h?ca=', 'Name the file of certificates'],
    ['rediss+cluster://:secret@h?ca', 'Name the file of certificates'],
    ['redis://:secret@h?timeout=3', 'no option "timeout"'],
    ['redis+cluster://:secret@a/1', 'no databases'],
    ['redis+sentinel://:secret@a', 'Name the master'],
    ['redis+sentinel://:secret@a/main/1/2', 'Name the master'],
    ['redis+unix://:secret@h/run/redis.sock', 'by its absolute path'],
    ['rediss+unix:///run/redis.sock', 'does not support TLS'],
  ])('%s', (url, message) => {
    const parse = () => parseRedisUrl(url);
    expect(parse).toThrow(RedisUrlError);
    expect(parse).toThrow(message);
    expect(parse).not.toThrow(/secret/);
  });
});
