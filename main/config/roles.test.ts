import { expect, test } from 'vitest';
import { loadConfig } from './config.ts';
import { allRoles, assertShared, sharingWarning, parseRoles } from './roles.ts';

const shared = {
  BERTH_STORE: 'mongodb',
  BERTH_QUEUE: 'bullmq',
  BERTH_BUS: 'redis',
  BERTH_MONGODB_URL: 'mongodb://127.0.0.1',
  BERTH_REDIS_URL: 'redis://127.0.0.1',
};

test('roles are parsed from a list; the default is all of them', () => {
  expect(parseRoles(undefined)).toEqual(allRoles);
  expect(parseRoles('api, proxy')).toEqual(new Set(['api', 'proxy']));
  expect(() => parseRoles('api,porxy')).toThrow('"porxy"');
  expect(() => parseRoles('')).toThrow('no role');
});

test('one process with every role needs no shared drivers', () => {
  expect(() => assertShared(loadConfig({}), allRoles)).not.toThrow();
});

test('a process with some roles reports which drivers it must share with the others', () => {
  const config = loadConfig({});
  for (const each of ['registry', 'api', 'worker', 'proxy']) {
    expect(() => assertShared(config, parseRoles(each))).toThrow('BERTH_STORE');
    expect(() => assertShared(loadConfig(shared), parseRoles(each))).not.toThrow();
  }
  expect(() => assertShared(config, parseRoles('api'))).toThrow(/BERTH_QUEUE[^]*BERTH_BUS/);
  expect(() => assertShared(config, parseRoles('registry'))).not.toThrow('BERTH_BUS');
  expect(() => assertShared(config, parseRoles('api,worker'))).not.toThrow('BERTH_QUEUE');
});

test('a driver without its URL is reported before anything opens', () => {
  expect(() => loadConfig({ BERTH_STORE: 'mongodb', BERTH_BUS: 'redis' })).toThrow(
    /BERTH_MONGODB_URL: Needed for BERTH_STORE=mongodb[^]*BERTH_REDIS_URL: Needed for BERTH_BUS=redis/,
  );
});

test('a registry that cannot notify an API of pushes causes a warning, unless prefetching is off', () => {
  const warning = (roles: string, more = {}) =>
    sharingWarning(loadConfig({ ...shared, BERTH_BUS: 'process', ...more }), parseRoles(roles));
  expect(warning('registry')).toContain('BERTH_BUS=redis');
  expect(warning('registry', { BERTH_BUS: 'redis' })).toBeUndefined();
  expect(warning('registry', { BERTH_PREFETCH: 'no' })).toBeUndefined();
  expect(warning('registry,api')).toBeUndefined();
});

test('a worker without a proxy in its process and without an advertised host causes a warning', () => {
  const warning = (roles: string, more = {}) => sharingWarning(loadConfig({ ...shared, ...more }), parseRoles(roles));
  expect(warning('worker')).toMatch(/^Only proxies on this machine can reach .* set BERTH_ADVERTISED_HOST/);
  expect(warning('api,worker')).toContain('BERTH_ADVERTISED_HOST');
  expect(warning('worker', { BERTH_ADVERTISED_HOST: '10.0.0.2' })).toBeUndefined();
  expect(warning('worker,proxy')).toBeUndefined();
  expect(warning('registry,api,proxy')).toBeUndefined();
  expect(sharingWarning(loadConfig({}), allRoles)).toBeUndefined();
});
