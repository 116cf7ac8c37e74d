import { expect, test } from 'vitest';
import { pathThrough } from './engine-path.ts';

const mounts = [
  { Source: '/var/lib/docker/volumes/worker/_data', Destination: '/data' },
  { Source: '/srv/leases', Destination: '/data/leases' },
  { Source: '/run/docker.sock', Destination: '/var/run/docker.sock' },
];

test.each([
  ['in a volume', '/data/mounts/one', '/var/lib/docker/volumes/worker/_data/mounts/one'],
  ['that is a volume', '/data', '/var/lib/docker/volumes/worker/_data'],
  ['in the innermost of several', '/data/leases/one', '/srv/leases/one'],
  ['with a name that begins like a volume', '/data-2/leases', undefined],
  ['with dots in its name', '/data/..one', '/var/lib/docker/volumes/worker/_data/..one'],
  ['of the container alone', '/tmp', undefined],
])('the engine sees a folder %s', (_what, folder, path) => {
  expect(pathThrough(mounts, folder)).toBe(path);
});
