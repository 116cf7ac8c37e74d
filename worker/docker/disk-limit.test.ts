import { expect, test } from 'vitest';
import { diskLimitKind, storageOptions, storageRefused } from './disk-limit.ts';

const over = (Driver: string, backing: string) =>
  diskLimitKind({ Driver, DriverStatus: [['Backing Filesystem', backing]] });

test('only some storage drivers limit what a container writes', () => {
  expect([over('overlay2', 'xfs'), over('overlay2', 'extfs'), over('vfs', 'xfs')]).toEqual(['written', 'none', 'none']);
  expect(diskLimitKind({ Driver: 'zfs', DriverStatus: null })).toBe('written');
  expect(diskLimitKind({ Driver: 'btrfs' })).toBe('all');
  // The image store of containerd.
  expect(diskLimitKind({ Driver: 'overlayfs', DriverStatus: [['driver-type', 'io.containerd.snapshotter.v1']] })).toBe(
    'none',
  );
  expect(diskLimitKind({})).toBe('none');
});

test('if the driver counts the files of the image, the limit includes them', () => {
  const limit = { writtenBytes: 100, imageBytes: 7 };
  expect(storageOptions('written', limit)).toEqual({ size: '100' });
  expect(storageOptions('all', limit)).toEqual({ size: '107' });
  expect([storageOptions('none', limit), storageOptions('written', undefined)]).toEqual([undefined, undefined]);
});

test.each([
  ["--storage-opt is supported only for overlay over xfs with 'pquota' mount option", true],
  ['Storage size cannot be less than 1MiB', true],
  ['No command specified', false],
])('the message of a driver that cannot limit: %s', (message, isIt) => {
  expect(storageRefused.test(message)).toBe(isIt);
});
