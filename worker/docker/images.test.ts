import { expect, test } from 'vitest';
import { imageFoldersIn } from './images.ts';

test('with the image store of the engine, images are in its root folder', () => {
  const DriverStatus = [
    ['Backing Filesystem', 'extfs'],
    ['Supports d_type', 'true'],
  ];
  expect(imageFoldersIn({ DockerRootDir: '/srv/docker', DriverStatus })).toEqual(['/srv/docker']);
});

test('with the image store of containerd, images are in either folder', () => {
  const DriverStatus = [['driver-type', 'io.containerd.snapshotter.v1']];
  const folders = ['/var/lib/docker', '/var/lib/containerd'];
  expect(imageFoldersIn({ DockerRootDir: '/var/lib/docker', DriverStatus })).toEqual(folders);
});

test('without a root folder in its description, an engine has no known image folder', () => {
  expect(imageFoldersIn({ DriverStatus: null })).toEqual([]);
});
