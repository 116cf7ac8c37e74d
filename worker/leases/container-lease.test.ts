// Takes about 10 s
import { copyFile, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Backend } from '../../model/backend.ts';
import { ContainerLeases, bootTimeMs } from './container-lease.ts';
import { initHardStopBeforeMs, initSoftStopBeforeMs, leaseMs } from '../../model/key.ts';
import { canMount, SmallDisk, whyNoDisk } from '../../test/kit/machine/small-disk.ts';
import { steered } from '../../test/kit/ports/steered.ts';
import { eventually, openTestPlatform, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';
import type { Worker } from '../worker.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`a container that enforces the lease of its key ${why ?? ''}`, () => {
  let platform: TestPlatform;
  let worker: Worker;
  beforeAll(async () => {
    platform = await openTestPlatform();
    worker = await platform.openWorker({ store: steered(platform.store, { isShared: true }) });
  });
  afterAll(async () => {
    await worker?.[Symbol.asyncDispose]();
    await platform?.[Symbol.asyncDispose]();
  });

  let keys = 0;

  async function schedule(config: Readonly<Record<string, unknown>>, isKeyed = true): Promise<string> {
    const key = isKeyed ? await platform.claim(`room-${keys++}`) : {};
    return await platform.schedule({ imageDigest: await platform.images.addConfigured(config), ...key });
  }

  async function ended(id: string): Promise<Backend> {
    return await platform.until(id, 'terminated');
  }

  /** The output of a script in the container of a backend. */
  async function outputOf(script: string, isKeyed: boolean): Promise<string[]> {
    const served = `(${script}) > /www/index.html 2>&1; exec httpd -f -p $PORT -h /www`;
    const id = await schedule({ Cmd: ['/bin/sh', '-c', served] }, isKeyed);
    const { address } = await platform.until(id, 'ready');
    const text = await (await fetch(`http://${address?.host}:${address?.port}/`)).text();
    await platform.end(id);
    return text.trimEnd().split('\n');
  }

  it.each([
    ['looked up in PATH', { Entrypoint: ['httpd', '-f'], Cmd: ['-p', '8080', '-h', '/www'] }],
    ['relative to WORKDIR', { WorkingDir: '/bin', Cmd: ['./busybox', 'httpd', '-f', '-p', '8080', '-h', '/www'] }],
    ['of a user without rights', { User: '12345:23456', Cmd: ['/bin/httpd', '-f', '-p', '8080'] }],
    ['that is an entrypoint alone', { Entrypoint: ['/bin/httpd', '-f', '-p', '8080'] }],
  ])('runs a program %s', async (_what, config) => {
    const id = await schedule(config);
    expect(await platform.until(id, 'ready')).toMatchObject({ status: 'ready' });
    await platform.end(id);
  });

  it('reports that an image has no command', async () => {
    expect((await ended(await schedule({}))).history.at(-1)).toMatchObject({
      failure: 'The image names no program to run: add CMD or ENTRYPOINT to its Dockerfile',
    });
  });

  it.each([
    ['exit 7', 7],
    ['kill -9 $$', 137],
    ['no-such-program', 127],
  ])('reports the exit code of "%s"', async (script, exitCode) => {
    expect((await ended(await schedule({ Cmd: ['/bin/sh', '-c', script] }))).history.at(-1)).toMatchObject({
      exitCode,
      terminationReason: null,
    });
  });

  it('sees the same environment as without its own init', async () => {
    const own = /^(?:SESSION_BACKEND_|HOSTNAME=)/;
    const [keyed, keyless] = await Promise.all([outputOf('env', true), outputOf('env', false)]);
    const others = (lines: string[]) => lines.filter((line) => !own.test(line)).toSorted();
    expect(others(keyed)).toEqual(others(keyless));
    expect(others(keyed)).toContain('PATH=/bin');
  });

  it('cannot write its lease, nor its init', async () => {
    const script = 'touch /.berth/lease; echo 1 > /.berth/init; mv /.berth/lease /tmp';
    const lines = await outputOf(script, true);
    expect(lines).toHaveLength(3);
    expect(lines.every((line) => line.includes('Read-only file system'))).toBe(true);
  });

  it('has its folder removed when its backend has ended', async () => {
    const id = await schedule({ Cmd: ['/bin/httpd', '-f', '-p', '8080'] });
    await platform.until(id, 'ready');
    const folder = join(platform.folder, 'leases');
    // A renewal adds and removes names for a moment.
    const files = async () => (await readdir(join(folder, id))).toSorted();
    await expect.poll(files).toEqual(['init', 'lease', 'port-helper', 'spare']);
    await platform.end(id);
    await eventually(async () => ((await readdir(folder)).includes(id) ? undefined : true));
  });
});

describe('the lease that a container enforces', () => {
  it('shows afterwards how the container ended', async () => {
    await using platform = await openFolder();
    const lease = platform.leases.of('backend');
    await lease.open();
    expect(await lease.endedBy(0)).toBeUndefined();
    await lease.renew(bootTimeMs());
    expect(await lease.endedBy(0)).toBeUndefined();
    await lease.renew(bootTimeMs() - 50_000);
    expect(await lease.endedBy(0)).toBe('soft');
    expect(await lease.endedBy(20_000)).toBeUndefined();
    await lease.renew(bootTimeMs() - 60_000);
    expect(await lease.endedBy(0)).toBe('hard');
  });

  it('is removed, with its folder, if its backend does not need it', async () => {
    await using platform = await openFolder();
    for (const lease of ['one', 'two'].map((id) => platform.leases.of(id))) {
      await lease.open();
      await lease.renew(0);
    }
    await platform.leases.removeAllBut((id) => id === 'two');
    expect((await readdir(platform.folder)).toSorted()).toEqual(['init', 'two']);
    expect((await stat(join(platform.folder, 'two', 'init'))).nlink).toBe(2);
  });

  it.skipIf(!canMount)(`is renewed on a full disk${whyNoDisk}`, async () => {
    await using disk = await SmallDisk.mount(1);
    await using platform = await openFolder(disk.path);
    const lease = platform.leases.of('backend');
    await lease.open();
    await lease.renew(bootTimeMs());
    await disk.fillUpTo(0);
    for (const grantedAtMs of [1_000, 1_000_000, 2_000_000]) {
      await lease.renew(grantedAtMs);
      const { hardMs = 0 } = (await lease.deadlines()) ?? {};
      expect(hardMs - grantedAtMs).toBe(leaseMs - initHardStopBeforeMs);
    }
  });

  it('is one of two that are written at a time', async () => {
    await using platform = await openFolder();
    const lease = platform.leases.of('backend');
    await lease.open();
    await Promise.all([lease.renew(1_000), lease.useStopSignal(3), lease.renew(2_000)]);
    const files = ['lease', 'spare'].map((name) => join(platform.folder, 'backend', name));
    const [text = '', spare] = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    expect(text.split(' ').map(Number)).toEqual([
      2_000 + leaseMs - initSoftStopBeforeMs,
      2_000 + leaseMs - initHardStopBeforeMs,
      3,
    ]);
    expect(spare?.length).toBe(text.length);
  });

  async function openFolder(parent = tmpdir()) {
    const folder = await mkdtemp(join(parent, 'berth-leases-'));
    await copyFile(join(import.meta.dirname, '../init/init-amd64'), join(folder, 'init'));
    return {
      folder,
      leases: new ContainerLeases(folder, folder),
      [Symbol.asyncDispose]: async () => await rm(folder, { recursive: true }),
    };
  }
});
