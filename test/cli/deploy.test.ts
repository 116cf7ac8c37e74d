// Takes about 20 s
/** The command line from nothing to a connected service: the published bundle as a process, against a platform on a real engine. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ConnectResponse } from '../../contract/connect.ts';
import { packImage } from '../../setup/image.ts';
import { runCommand, tryCommand } from '../../setup/command.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { testImage } from '../kit/engines/images.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { bundled, Cli } from './bundle.ts';

const [engine] = testEngines();

describe.skipIf(!engine)('from nothing to a connected service', () => {
  let platform: TestPlatform;
  let folder: string;
  let cli: Cli;
  const image = `berth-test/cli:${process.pid}`;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-cli-'));
    const [program, started] = await Promise.all([bundled(join(folder, 'package')), startPlatform({ engine })]);
    platform = started;
    cli = await Cli.at(program, join(folder, 'home'), { DOCKER_HOST: engine?.host, BERTH_HOST: platform.apiUrl });
    const at = { env: { DOCKER_HOST: engine?.host } };
    await runCommand('docker', ['load', '--quiet'], {
      ...at,
      input: packImage({ ...(await testImage('serve')), tag: image }),
    });
  });
  afterAll(async () => {
    await tryCommand('docker', ['rmi', image, `${platform.registry}/home/draw:latest`], {
      env: { DOCKER_HOST: engine?.host },
    });
    await platform[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  test('login --token-stdin, push, connect --wait', async () => {
    const login = await cli.run(['login', '--token-stdin'], { input: `${platform.token}\n` });
    expect(login).toEqual({ code: 0, stdout: '', stderr: `Logged in to ${platform.apiUrl} as home\n` });
    expect((await stat(cli.configPath)).mode & 0o777).toBe(0o600);
    expect(await readFile(cli.configPath, 'utf8')).toContain(platform.token);

    const pushed = await cli.json<{ digest: string }>('push', 'draw', image, '--create');
    expect(pushed).toEqual({
      service: 'home/draw',
      tag: 'latest',
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    });

    const connected = await cli.json<ConnectResponse>('connect', 'draw', '--wait');
    expect(connected).toMatchObject({ status: 'ready', spawned: true });
    expect(await (await fetch(connected.url)).text()).toContain('Hello from a test backend');

    const backend = connected.backend_id;
    expect(await cli.ok('backend', 'list')).toMatch(
      new RegExp(`^${backend}  home/draw  default +ready +\\d+ s ago +-$`, 'm'),
    );
    // Without --follow, it ends although the backend runs.
    expect(await cli.ok('logs', backend)).toBe('serving\n');
    const following = cli.start(['logs', '--follow', '--json', backend]);
    await following.output(/("line":"serving")/);
    expect(await cli.json('terminate', backend, '--wait')).toEqual({ backend, status: 'terminated' });
    expect((await following.done).stdout).toMatch(/"line":"bye"}\n$/);
    expect(await cli.ok('backend', 'info', backend)).toMatch(/^terminated +\S+Z +soft, external, exit code 0$/m);
    expect(await cli.json('backend', 'list', 'draw', '--limit', '1')).toMatchObject([{ id: backend }]);
    expect(await cli.json('backend', 'list')).toEqual([]);
  });
});
