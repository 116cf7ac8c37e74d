import { chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLog } from '../../core/log/log.ts';
import { loadConfig } from '../config/config.ts';
import { guardMountFolder } from './mount-folder.ts';
import { openPlatform } from '../platform.ts';
import { allRoles } from '../config/roles.ts';

const isRoot = process.getuid?.() === 0;

describe('the mount folder', () => {
  let parent: string;
  let folder: string;
  const log = silentLog();
  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), 'berth-mounts-'));
    folder = join(parent, 'mounts');
  });
  afterEach(async () => await rm(parent, { recursive: true }));

  const modeOf = async (path: string) => (await stat(path)).mode & 0o7777;

  test.each([0o755, 0o750, 0o701, 0o777])(
    'is closed to other users of the machine if they had access: %o',
    async (mode) => {
      await mkdir(folder);
      await chmod(folder, mode);
      const warned = vi.spyOn(log, 'warn');
      await guardMountFolder(folder, log);
      expect(await modeOf(folder)).toBe(0o700);
      expect(warned).toHaveBeenCalledOnce();
      warned.mockRestore();
    },
  );

  test('is unchanged if only its owner has access, or if it does not exist yet', async () => {
    const warned = vi.spyOn(log, 'warn');
    await guardMountFolder(folder, log);
    await mkdir(folder, { mode: 0o700 });
    await guardMountFolder(folder, log);
    expect(await modeOf(folder)).toBe(0o700);
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });

  test('is refused when it is a file', async () => {
    await writeFile(folder, '');
    await expect(guardMountFolder(folder, log)).rejects.toThrow(`BERTH_MOUNT_FOLDER (${folder}): It is not a folder`);
  });

  test('is closed by a process with a worker at its start', async () => {
    await mkdir(folder);
    await chmod(folder, 0o755);
    const config = loadConfig({
      BERTH_DATA_FOLDER: join(parent, 'data'),
      BERTH_MOUNT_FOLDER: folder,
      DOCKER_HOST: `unix://${parent}/no-engine.sock`,
      BERTH_API_PORT: '0',
      BERTH_REGISTRY_PORT: '0',
      BERTH_PROXY_PORT: '0',
      BERTH_OPERATIONS_PORT: '0',
    });
    await using _platform = await openPlatform({ config, log, roles: allRoles });
    expect(await modeOf(folder)).toBe(0o700);
  });

  test.skipIf(!isRoot)(
    'is refused when it belongs to another user, because that user could open it again',
    async () => {
      await mkdir(folder, { mode: 0o700 });
      await chown(folder, 12_345, 12_345);
      await expect(guardMountFolder(folder, log)).rejects.toThrow(/BERTH_MOUNT_FOLDER .* belongs to user 12345/);
      expect(await modeOf(folder)).toBe(0o700);
    },
  );
});
