import { expect, test } from 'vitest';
import { imageFoldersIn } from './images.ts';

test('images are below the root of the engine, with its own store of them', () => {
  const DriverStatus = [
    ['Backing Filesystem', 'extfs'],
    ['Supports d_type', 'true'],
  ];
  expect(imageFoldersIn({ DockerRootDir: '/srv/docker', DriverStatus })).toEqual(['/srv/docker']);
});

test('with that of containerd, they are there or in its own folder', () => {
  const DriverStatus = [['driver-type', 'io.containerd.snapshotter.v1']];
  const folders = ['/var/lib/docker', '/var/lib/containerd'];
  expect(imageFoldersIn({ DockerRootDir: '/var/lib/docker', DriverStatus })).toEqual(folders);
});

test('an engine that does not say has them nowhere', () => {
  expect(imageFoldersIn({ DriverStatus: null })).toEqual([]);
});
