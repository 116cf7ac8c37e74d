// Takes about 15 s
/** `berth collect`, `berth verify` and `berth quota`, with and without a running platform. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runBerth, runPlainBerth } from '../kit/platform/berth-command.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { RegistryClient } from '../kit/platform/registry-client.ts';

let platform: TestPlatform;
let client: RegistryClient;
beforeAll(async () => {
  platform = await startPlatform({ settings: { BERTH_COLLECT_LEASE_SECONDS: '1', BERTH_COLLECT_WAIT_SECONDS: '0' } });
  client = new RegistryClient(platform);
});
afterAll(async () => await platform[Symbol.asyncDispose]());

test('a dry run prints in sentences what a collection would remove, and a collection removes it', async () => {
  const image = client.image('draw', 'v1', [RegistryClient.layer(1024 * 1024)]);
  await client.push(image);
  await client.delete(image);
  let dryRunOutput = '';
  const dryRun = async () => (dryRunOutput = (await runPlainBerth(platform, 'collect', '--dry-run')).stdout);
  await expect.poll(dryRun, { interval: 500 }).toContain('home/draw: would lose 2 blobs (1 MiB)');
  expect(dryRunOutput).toContain('In the end it would free 2 blobs (1 MiB). Nothing was changed.');
  const done = await runPlainBerth(platform, 'collect');
  expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('home/draw: lost 2 blobs (1 MiB)')]);
  expect(done.stdout).toContain('Removed 2 blobs (1 MiB).');
  expect((await runBerth(platform, 'collect')).lines).toMatchObject([{ type: 'collected', links: 0 }]);
});

test('verify exits with 1 if a problem remains, whether a platform runs or not, and repairs', async () => {
  const image = client.image('paint', 'v1', [RegistryClient.layer(10_000)]);
  await client.push(image);
  expect((await runPlainBerth(platform, 'verify')).stdout).toMatch(
    /^Checked 2 blobs .* in 1 repository: no problem\.\n$/,
  );
  const [layer] = image.layers;
  const files = await readdir(platform.dataFolder, { recursive: true });
  const file = files.find((path) => path.endsWith(layer?.digest.replace('sha256:', '') ?? '-'));
  await writeFile(join(platform.dataFolder, file ?? ''), Buffer.alloc(10_000));
  const running = await runPlainBerth(platform, 'verify');
  expect([running.code, running.stdout]).toEqual([1, expect.stringContaining(`blob-damaged ${layer?.digest}`)]);
  await platform.stop();
  expect((await runBerth(platform, 'verify')).lines[0]).toMatchObject({ kind: 'blob-damaged', repaired: false });
  const repair = await runPlainBerth(platform, 'verify', '--repair');
  expect([repair.code, repair.stdout]).toEqual([
    1,
    expect.stringContaining('home/paint (v1) needs it, push that again or delete it'),
  ]);
  await platform.restart();
  await client.push(image);
  expect((await runPlainBerth(platform, 'verify')).code).toBe(0);
});

test('quota prints what accounts store, and sets limits, whether a platform runs or not', async () => {
  const quota = async (...words: string[]) => {
    const { code, stdout } = await runPlainBerth(platform, 'quota', ...words);
    return [code, stdout.trimEnd()];
  };
  const stored = expect.stringMatching(/^home: \d+(\.\d)? KiB, no limit \(as all accounts\)$/);
  expect(await quota()).toEqual([0, stored]);
  expect(await quota('home', '1.5MiB')).toEqual([0, expect.stringMatching(/^home: \S+ KiB of 1\.5 MiB$/)]);
  // Always a new layer: existing ones are always accepted, and the first pushes may be, too.
  const push = async () => {
    return await client.push(client.image('draw', 'v2', [RegistryClient.layer(2 * 1024 * 1024)])).then(
      () => 'accepted',
      (error: unknown) => String(error),
    );
  };
  await expect.poll(push, { interval: 250 }).toContain('returned 403');
  expect(await quota('home', 'none')).toEqual([0, expect.stringMatching(/^home: \S+ \S+, no limit$/)]);
  await expect.poll(push, { interval: 250 }).toBe('accepted');
  expect(await quota('nobody', '1GB')).toEqual([1, 'There is no account "nobody"']);
  const wrong = await runPlainBerth(platform, 'quota', 'home', '0');
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('Use a size such as 50GiB')]);
  await platform.stop();
  expect(await quota('home', 'default')).toEqual([0, expect.stringContaining('MiB, no limit (as all accounts)')]);
  await platform.restart();
  expect((await runBerth(platform, 'quota', 'home')).lines).toMatchObject([
    { type: 'quota', account: 'home', max_bytes: 0, is_own: false },
  ]);
});

test('a command without the secret, without a platform, or with wrong arguments prints what to do', async () => {
  const secret = { BERTH_SECRET_FILE: join(platform.dataFolder, 'other-secret') };
  await writeFile(secret.BERTH_SECRET_FILE, 'x'.repeat(43));
  const wrongSecret = await runPlainBerth({ environment: { ...platform.environment, ...secret } }, 'collect');
  expect([wrongSecret.code, wrongSecret.stderr]).toEqual([
    1,
    expect.stringContaining('need the secret of this platform'),
  ]);
  const elsewhere = { ...platform.environment, BERTH_OPERATIONS_PORT: '1' };
  const lost = await runPlainBerth({ environment: elsewhere }, 'collect');
  expect([lost.code, lost.stderr]).toEqual([1, expect.stringContaining('set BERTH_OPERATIONS_HOST and _PORT')]);
  const nowhere = { ...platform.environment, BERTH_DATA_FOLDER: join(platform.dataFolder, 'nowhere') };
  const nothing = await runPlainBerth({ environment: nowhere }, 'verify');
  expect([nothing.code, nothing.stderr]).toEqual([1, expect.stringContaining('There is nothing at')]);
  for (const args of [
    ['collect', '--repair'],
    ['verify', '--x'],
    ['verify', 'word'],
    ['quota', 'home', '1GB', 'more'],
  ]) {
    const wrong = await runPlainBerth(platform, ...args);
    expect([args, wrong.code, wrong.stderr]).toEqual([args, 2, expect.stringContaining('Usage: berth dev')]);
  }
  const task = `${platform.operationsUrl}/tasks/collect`;
  expect((await fetch(task, { method: 'POST' })).status).toBe(401);
});
