import { expect, test } from 'vitest';
import { environmentOf, newService, withImageTag, withSpawn, withVisibility } from './service.ts';

const now = new Date('2026-01-01T00:00:00.000Z');
const service = newService({ account: 'acme', name: 'draw', cluster: 'default' }, now);

test('a new service has a default environment with the tag that "docker push" writes by default', () => {
  expect(service.id).toBe('acme/draw');
  expect(environmentOf(service)).toMatchObject({ name: 'default', imageTag: 'latest', cluster: 'default' });
});

test('setting the image of an environment changes nothing else', () => {
  const updated = withImageTag(service, 'default', 'v2');
  expect(environmentOf(updated).imageTag).toBe('v2');
  expect(environmentOf(service).imageTag).toBe('latest');
  expect(withSpawn(updated, 'default', now)).toMatchObject({ lastSpawnedAt: now });
});

test('a service is private until it is made public, and setting the same visibility changes nothing', () => {
  const shown = withVisibility(service, true);
  expect([service.public, shown.public, withVisibility(shown, false).public]).toEqual([undefined, true, false]);
  expect(withVisibility(service, false)).toBe(service);
  expect(withVisibility(shown, true)).toBe(shown);
});

test('an unknown environment is rejected', () => {
  expect(() => environmentOf(service, 'staging')).toThrow(
    expect.objectContaining({ code: 'EnvironmentNotFound' }) as Error,
  );
  expect(() => withImageTag(service, 'staging', 'v2')).toThrow('staging');
});
