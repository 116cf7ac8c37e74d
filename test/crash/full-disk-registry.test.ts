/** A disk that is really full, below the registry's HTTP API: a file system of a few megabytes. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runBerth } from '../kit/berth-command.ts';
import { startPlatform } from '../kit/platform.ts';
import { RefusedError, RegistryClient } from '../kit/registry-client.ts';

/** Mounts a small file system, where this machine lets us. */
async function smallDisk(): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
  const path = await mkdtemp(join(tmpdir(), 'berth-small-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', path]).status === 0;
  const remove = async () => {
    if (mounted) spawnSync('umount', [path]);
    await rm(path, { recursive: true, force: true });
  };
  if (mounted) return { path, [Symbol.asyncDispose]: remove };
  await remove();
  return undefined;
}

const probe = await smallDisk();
const canMount = probe !== undefined;
await probe?.[Symbol.asyncDispose]();
const why = canMount ? '' : ' (skipped: only root can mount a small file system)';

test.runIf(canMount)(
  `on a full disk pushes are refused with 507, nothing is damaged, and they succeed later${why}`,
  async () => {
    await using disk = await smallDisk();
    if (!disk) throw new Error('Mounted a moment ago, not now');
    await using platform = await startPlatform({ settings: { BERTH_DATA_FOLDER: disk.path } });
    const client = new RegistryClient(platform);
    const before = client.image('kept', 'v1', [RegistryClient.layer(1_000_000)]);
    await client.push(before);
    // Of even and odd size: in one request, and as an upload.
    const large = [RegistryClient.layer(9_000_000), RegistryClient.layer(9_000_001)].map((layer, i) =>
      client.image('large', `v${i}`, [layer]),
    );
    const filler = join(disk.path, 'filler');
    await writeFile(filler, Buffer.alloc(5_000_000));
    for (const image of large) {
      const refusal: unknown = await client.push(image).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(RefusedError);
      expect(refusal).toHaveProperty('status', 507);
      expect(await client.problemWith(image)).toBe('no such tag');
    }
    expect(await client.problemWith(before)).toBeUndefined();
    expect((await runBerth(platform, 'verify')).lines.at(-1)).toMatchObject({ type: 'verified', problems: 0 });
    await rm(filler);
    spawnSync('mount', ['-o', 'remount,size=64m', disk.path]);
    for (const image of large) {
      await client.push(image);
      expect(await client.problemWith(image)).toBeUndefined();
    }
    expect((await runBerth(platform, 'verify')).lines.at(-1)).toMatchObject({ type: 'verified', problems: 0 });
  },
);
