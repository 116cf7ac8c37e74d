import { mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tryCommand } from '../../../setup/command.ts';
import { hasPackages, linkPrograms } from './test-programs.ts';

const packaged = await hasPackages();

let folder: string;
const path = process.env['PATH'] ?? '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-programs-test-'));
});
afterEach(async () => {
  process.env['PATH'] = path;
  await rm(folder, { recursive: true });
});

describe.skipIf(!packaged)(`the PATH of tests${packaged ? '' : ' (skipped: packages are not Debian’s here)'}`, () => {
  test('has the programs of the base system, of the declared packages, and Node', async () => {
    await linkPrograms(join(folder, 'links'), { node: process.execPath });
    const names = await readdir(join(folder, 'links'));
    expect(names).toEqual(expect.arrayContaining(['sh', 'tar', 'ldd', 'dpkg', 'apt-get', 'mount', 'prlimit', 'node']));
    process.env['PATH'] = join(folder, 'links');
    const commands = { openssl: ['version'], curl: ['--version'], awk: ['BEGIN { exit 0 }'] };
    for (const [program, args] of Object.entries(commands)) {
      expect([program, (await tryCommand(program, args)).code]).toEqual([program, 0]);
    }
    expect(await realpath(join(folder, 'links/node'))).toBe(await realpath(process.execPath));
  });

  test('has no program that was installed by hand, under any name', async () => {
    for (const name of ['openssl', 'redis-server', 'docker-compose', 'by-hand']) {
      await writeFile(join(folder, name), '#!/bin/sh\n', { mode: 0o755 });
    }
    process.env['PATH'] = [folder, path].join(delimiter);
    await linkPrograms(join(folder, 'links'), { node: process.execPath });
    const names = await readdir(join(folder, 'links'));
    const targets = await Promise.all(names.map(async (name) => await realpath(join(folder, 'links', name))));
    expect(targets.filter((target) => target.startsWith(folder) || target.startsWith('/usr/local/bin/'))).toEqual([]);
    expect(names).not.toContain('by-hand');
    expect(names).not.toContain('docker-compose');
  });
});
