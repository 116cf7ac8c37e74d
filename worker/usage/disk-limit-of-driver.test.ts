// Takes about 15 s
// Runs on every engine
/** The storage driver limits what a container writes if it can. Uses engines with their data on other file systems. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startEngine, withoutFirewall } from '../../test/kit/engines/docker-engine.ts';
import { LoopDisk, whyNoLoopDisk } from '../../test/kit/machine/loop-disk.ts';
import type { FileSystemType } from '../../test/kit/machine/loop-disk.ts';
import { fetchText } from '../testing/fixture.ts';
import { testEngineKind } from '../testing/test-engine.ts';
import { openTestPlatform, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';

const mebibyte = 1024 * 1024;
const diskBytesLimit = 16 * mebibyte;

/** Writes two files, and serves the names of the written ones from a folder in memory. */
const writing = {
  Cmd: [
    '/bin/sh',
    '-c',
    ['large 32', 'small 12']
      .map((file) => file.split(' '))
      .map(([name, mebibytes]) => {
        const written = `head -c ${Number(mebibytes) * mebibyte} /dev/zero > /${name} && sync`;
        return `if ${written}; then echo ${name} >> /dev/shm/out.txt; fi; rm /${name}; sync`;
      })
      .join('; ') + '; exec httpd -f -p $PORT -h /dev/shm',
  ],
};

const limited = describe.each<[FileSystemType, string]>([
  ['btrfs', 'btrfs'],
  ['xfs', 'overlay2'],
]);

limited('the disk limit of a container, on %s', async (type, driver) => {
  const why = (await whyNoTests()) ?? (await whyNoLoopDisk(type));

  /** A platform whose engine has its data on a file system of this type. */
  async function platformOnDisk(parts: AsyncDisposableStack): Promise<TestPlatform> {
    const disk = parts.use(await LoopDisk.mount(type));
    const args = ['--data-root', join(disk.path, 'data'), '--storage-driver', driver, ...withoutFirewall];
    const { host } = parts.use(await startEngine(testEngineKind(), args));
    const platform = parts.use(await openTestPlatform(undefined, { own: host }));
    parts.use(await platform.openWorker({ settings: { diskBytesLimit } }));
    return platform;
  }

  it.skipIf(why !== undefined)(`is enforced by the driver if it can ${why ?? ''}`, async () => {
    await using parts = new AsyncDisposableStack();
    const platform = await platformOnDisk(parts);
    const id = await platform.schedule({ imageDigest: await platform.images.addConfigured(writing) });
    await platform.until(id, 'ready');
    // XFS has no quotas unless it is mounted with them: the engine refuses the limit, and the worker measures.
    const hasLimit = type === 'btrfs';
    expect((await platform.stateOf(id))?.hasDiskLimit).toBe(hasLimit);
    expect((await fetchText(platform, id, '/out.txt')).split('\n')).toEqual([
      ...(hasLimit ? [] : ['large']),
      'small',
      '',
    ]);
    const next = await platform.schedule({ imageDigest: await platform.images.addConfigured(writing) });
    await platform.until(next, 'ready');
    await Promise.all([id, next].map((each) => platform.end(each)));
  });
});
