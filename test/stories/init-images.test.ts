/** The init of containers with a key, in minimal images, on real engines. */
import { randomUUID } from 'node:crypto';
import { chmod, copyFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { arch, tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand, tryCommand } from '../../setup/command.ts';
import { imageId, packImage } from '../../setup/image.ts';
import { staticBusybox } from '../kit/packages/docker-packages.ts';
import { testEngines } from '../kit/engines/engines.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-init-images-'));
  await chmod(folder, 0o755);
  const build = arch() === 'arm64' ? 'init-arm64' : 'init-amd64';
  await copyFile(new URL(`../../worker/init/${build}`, import.meta.url), join(folder, 'init'));
  await chmod(join(folder, 'init'), 0o755);
});
afterAll(async () => await rm(folder, { recursive: true }));

for (const engine of testEngines()) {
  const at = { env: { DOCKER_HOST: engine.host } };

  describe.concurrent(`the init on Docker Engine ${engine.version}, in an image with a single program`, () => {
    let image: string;
    beforeAll(async () => {
      const busybox = await staticBusybox();
      if (busybox === undefined) throw new Error('Install busybox-static: the test images contain it');
      // Busybox acts as the program of its file name: as `env` it is no shell.
      const alone = { tag: 'berth-test/alone:latest', layers: [[{ path: '/env', file: busybox, mode: 0o755 }]] };
      const packed = { ...alone, config: { Cmd: ['/env'] } };
      await runCommand('docker', ['load', '--quiet'], { ...at, input: packImage(packed) });
      image = await imageId(packed);
    });

    /** Runs a program under the init, with a lease that outlasts it. */
    const run = async (options: readonly string[], program: readonly string[]) => {
      const nowMs = Math.floor(uptime() * 1000);
      const draft = join(folder, randomUUID());
      await writeFile(draft, `${nowMs + 40_000} ${nowMs + 55_000} 15\n`);
      await rename(draft, join(folder, 'lease'));
      const mount = `type=bind,source=${folder},target=/.berth,readonly`;
      const args = ['run', '--rm', '--network', 'none', '--mount', mount, ...options, '--entrypoint', '/.berth/init'];
      return await tryCommand('docker', [...args, image, ...program], at);
    };

    test.for([
      ['without options', [], ['/env']],
      ['with a read-only root', ['--read-only'], ['/env']],
      ['as a user without a name', ['--user', '12345:23456'], ['/env']],
      ['with a program from PATH', ['--env', 'PATH=/nowhere:/'], ['env']],
      ['with a program relative to the working folder', ['--workdir', '/'], ['./env']],
      ['with all of that', ['--read-only', '--user', '12345', '--workdir', '/', '--cap-drop', 'ALL'], ['./env']],
    ] as const)('runs %s', async ([, options, program]) => {
      const { code, stdout, stderr } = await run(options, program);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^HOSTNAME=/m);
      expect(stdout).not.toMatch(/berth/i);
    });

    test('exits with 127 and the reason if the program is missing', async () => {
      expect(await run(['--read-only'], ['sh', '-c', 'true'])).toMatchObject({
        code: 127,
        stderr: expect.stringContaining('sh'),
      });
    });
  });
}
