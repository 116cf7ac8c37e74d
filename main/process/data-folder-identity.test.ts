import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { diskFolder } from '../../test/kit/machine/disk-folder.ts';
import { dataFolderIdentity, locationOnDisk, showPresence } from './data-folder-identity.ts';

const host = `22 27 0:21 / /proc rw - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 254:16 / /srv/my\\040data rw shared:1 - ext4 /dev/vdb rw
31 27 0:40 / /run rw - tmpfs tmpfs rw
`;

/** Two containers of one image, each with a volume at the same path. */
const container = (volume: string) => `700 600 0:53 / / rw - overlay overlay rw,lowerdir=/a
701 700 254:0 /var/lib/docker/volumes/${volume}/_data /data rw - ext4 /dev/vda rw
`;

test('a data folder is identified by its device and its path on the device', () => {
  expect(locationOnDisk('/home/ada/.berth', host)).toBe('/dev/vda:/home/ada/.berth');
  expect(locationOnDisk('/srv/my data/berth', host)).toBe('/dev/vdb:/berth');
  expect(locationOnDisk('/srv/my data', host)).toBe('/dev/vdb:/');
});

test('the same path in two containers has two locations, each that of its volume on the host', () => {
  expect(locationOnDisk('/data', container('one'))).toBe('/dev/vda:/var/lib/docker/volumes/one/_data');
  expect(locationOnDisk('/data', container('two'))).toBe('/dev/vda:/var/lib/docker/volumes/two/_data');
  expect(locationOnDisk('/var/lib/docker/volumes/one/_data', host)).toBe('/dev/vda:/var/lib/docker/volumes/one/_data');
});

test('a folder in memory or in a container has no location', () => {
  expect(locationOnDisk('/run/berth', host)).toBeUndefined();
  expect(locationOnDisk('/app/.berth', container('one'))).toBeUndefined();
  expect(locationOnDisk('/home/ada/.berth', '')).toBeUndefined();
});

test('other processes detect a running platform, even under another path of its folder', async () => {
  const folder = await mkdtemp(join(diskFolder(), 'berth-identity-test-'));
  const id = randomUUID();
  const isAlive = async () => (await dataFolderIdentity({ dataFolder: folder, dataFolderId: 'ours' }))?.isAlive(id);
  // Folders in memory have no identity.
  const known = (await isAlive()) !== undefined;
  const presence = await showPresence(id);
  expect(await isAlive()).toBe(known ? true : undefined);
  await presence[Symbol.asyncDispose]();
  expect(await isAlive()).toBe(known ? false : undefined);
  await symlink(folder, `${folder}-link`);
  const [direct, linked] = await Promise.all(
    [folder, `${folder}-link`].map(
      async (dataFolder) => (await dataFolderIdentity({ dataFolder, dataFolderId: 'ours' }))?.location,
    ),
  );
  expect(linked).toBe(direct);
  await rm(`${folder}-link`);
  await rm(folder, { recursive: true });
});
