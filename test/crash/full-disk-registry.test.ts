// Takes about 15 s
/** The registry on a full disk: a file system of a few megabytes. */
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { imageOf, layoutOf, tarOf } from '../kit/registry/archives.ts';
import { runBerth } from '../kit/platform/berth-command.ts';
import { api } from '../kit/platform/api-client.ts';
import { testDrivers } from '../kit/servers/drivers.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { RegistryError, RegistryClient } from '../kit/platform/registry-client.ts';
import type { PushedImage } from '../kit/platform/registry-client.ts';
import { canMount, SmallDisk, whyNoDisk } from '../kit/machine/small-disk.ts';

const mebibyte = 1024 * 1024;
const reserveMib = 8;

/** More than the space that the tests leave. */
const layerBytes = 7_000_000;

/** The message of each check of `/readyz`. */
async function readiness({ operationsUrl }: TestPlatform): Promise<Readonly<Record<string, string>>> {
  const answer = await fetch(`${operationsUrl}/readyz`);
  return ((await answer.json()) as { checks: Record<string, string> }).checks;
}

const noSpace = { error: { code: 'InsufficientStorage', status: 507 } };

/** Images with a layer of even and of odd size, which the client pushes in one request and as an upload. */
function largeImages(client: RegistryClient): PushedImage[] {
  return [RegistryClient.layer(layerBytes), RegistryClient.layer(layerBytes + 1)].map((layer, i) =>
    client.image('large', `v${i}`, [layer]),
  );
}

async function assertRejected(client: RegistryClient, image: PushedImage): Promise<void> {
  const error: unknown = await client.push(image).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RegistryError);
  expect(error).toHaveProperty('status', 507);
  expect(await client.problemWith(image)).toBe('no such tag');
}

/** Waits until there are no uploads, which are deleted after the response. */
async function untilNoUploads(disk: SmallDisk): Promise<void> {
  await expect.poll(() => readdir(join(disk.path, 'blobs', 'uploads'))).toEqual([]);
}

/** Uploads an image of one layer to the API. */
async function uploadArchive(platform: TestPlatform, layerBytes: number): Promise<unknown> {
  const { layers, config, manifest } = imageOf([randomBytes(layerBytes)]);
  const body = await tarOf(layoutOf([...layers, config, manifest], [{ blob: manifest, name: 'v1' }]));
  const headers = { 'content-type': 'application/x-tar' };
  const answer = await api(platform, `/v2/service/${platform.account}/kept/images`, { method: 'POST', body, headers });
  return await answer.json();
}

/** The stores that are used with blobs in files. */
const stores = testDrivers().map((drivers) =>
  drivers === 'embedded'
    ? { store: 'SQLite', settings: {} }
    : { store: 'MongoDB', settings: { BERTH_STORE: 'mongodb', BERTH_MONGODB_URL: drivers.mongodbUrl } },
);

describe.runIf(canMount).each(stores)('with $store', ({ settings: storeSettings }) => {
  test(`a push that needs the disk's reserve is rejected, leaves no bytes, and succeeds when there is space${whyNoDisk}`, async () => {
    await using disk = await SmallDisk.mount(64);
    const settings = {
      ...storeSettings,
      BERTH_MONGODB_DATABASE: `full-disk-${randomBytes(4).toString('hex')}`,
      BERTH_DATA_FOLDER: disk.path,
      BERTH_DISK_RESERVE_MIB: String(reserveMib),
    };
    await using platform = await startPlatform({ settings });
    const client = new RegistryClient(platform);
    const before = client.image('kept', 'v1', [RegistryClient.layer(1_000_000)]);
    await client.push(before);
    expect(await readiness(platform)).toMatchObject({ disk: 'ok', store: 'ok' });
    // A part of a layer fits on the disk.
    await disk.fillUpTo(reserveMib + 4);
    const large = largeImages(client);
    expect(await uploadArchive(platform, layerBytes)).toMatchObject(noSpace);
    for (const image of large) {
      await assertRejected(client, image);
      await untilNoUploads(disk);
      expect(await disk.freeBytes()).toBeGreaterThan((reserveMib + 3) * mebibyte);
    }
    expect(await readiness(platform)).toMatchObject({ disk: 'ok', store: 'ok' });
    // No part of a layer fits on the disk.
    await disk.fillUpTo(reserveMib - 1);
    const full = /^The disk is full: [67](?:\.\d)? MiB are free, and 8 MiB are kept free for the store$/;
    await expect.poll(async () => (await readiness(platform))['disk'], { interval: 250 }).toMatch(full);
    expect(await readiness(platform)).toHaveProperty('store', 'ok');
    for (const image of large) await assertRejected(client, image);
    const small = client.image('small', 'v1', [RegistryClient.layer(1_000)]);
    await assertRejected(client, small);
    expect(await uploadArchive(platform, 1_000)).toMatchObject(noSpace);
    await untilNoUploads(disk);
    expect(await client.problemWith(before)).toBeUndefined();
    expect((await runBerth(platform, 'verify')).lines.at(-1)).toMatchObject({ type: 'verified', problems: 0 });
    await disk.heal();
    for (const image of [...large, small]) {
      await client.push(image);
      expect(await client.problemWith(image)).toBeUndefined();
    }
    expect(await uploadArchive(platform, layerBytes)).toHaveProperty('digest');
    await expect.poll(async () => (await readiness(platform))['disk'], { interval: 250 }).toBe('ok');
    expect((await runBerth(platform, 'verify')).lines.at(-1)).toMatchObject({ type: 'verified', problems: 0 });
  });
});

test.runIf(canMount)(
  `without a reserve, a push that fills the disk is rejected, and its bytes are deleted${whyNoDisk}`,
  async () => {
    await using disk = await SmallDisk.mount(24);
    const settings = { BERTH_DATA_FOLDER: disk.path, BERTH_DISK_RESERVE_MIB: '0' };
    await using platform = await startPlatform({ settings });
    const client = new RegistryClient(platform);
    await disk.fillUpTo(5);
    const large = largeImages(client);
    for (const image of large) {
      await assertRejected(client, image);
      await untilNoUploads(disk);
    }
    await disk.heal();
    await client.push(large[0] as PushedImage);
    expect((await runBerth(platform, 'verify')).lines.at(-1)).toMatchObject({ type: 'verified', problems: 0 });
  },
);
