/** The registry with a real Docker Engine. Engines use registries on 127.0.0.0/8 without TLS. */
import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findImage } from '../model/image.ts';
import { services } from '../model/service.ts';
import { openTestRegistry } from '../test/kit/registry/registry.ts';
import type { TestRegistry } from '../test/kit/registry/registry.ts';

/** A working engine answers at once; a hanging one must not block the tests. */
const commandMs = 60_000;

const reason = whyNoEngine();
if (reason !== undefined) process.stderr.write(`Docker Engine tests skipped: ${reason}\n`);

describe.skipIf(reason !== undefined)('with a Docker Engine', () => {
  const unique = randomBytes(6).toString('hex');
  let registry: TestRegistry;
  let config: string;
  let image: string;
  const docker = async (...args: string[]) => {
    const run = promisify(execFile);
    return (await run('docker', ['--config', config, ...args], { timeout: commandMs })).stdout.trim();
  };

  beforeAll(async () => {
    registry = await openTestRegistry();
    config = await mkdtemp(join(tmpdir(), 'docker-config-'));
    image = `${registry.host}/acme/draw-${unique}`;
  });
  afterAll(async () => {
    await docker('rmi', '--force', `${image}:v1`).catch(() => {});
    await rm(config, { recursive: true, force: true });
    await registry[Symbol.asyncDispose]();
  });

  test('an engine logs in, pushes, removes its copy, and pulls by tag and by digest', async () => {
    await expect(docker('login', '-u', 'acme', '-p', 'wrong', registry.host)).rejects.toThrow(/unauthorized/);
    expect(await docker('login', '-u', 'acme', '-p', registry.token, registry.host)).toContain('Login Succeeded');
    const id = await importImage(config, `${image}:v1`, unique);
    const digest = /digest: (sha256:[a-f0-9]{64})/.exec(await docker('push', `${image}:v1`))?.[1];
    expect(digest).toBeDefined();

    await docker('rmi', `${image}:v1`);
    await docker('pull', `${image}:v1`);
    expect(await docker('inspect', '--format', '{{.Id}}', `${image}:v1`)).toBe(id);
    await docker('rmi', `${image}:v1`);
    await docker('pull', `${image}@${digest}`);
    expect(await docker('inspect', '--format', '{{.Id}}', `${image}@${digest}`)).toBe(id);
    await docker('rmi', `${image}@${digest}`);

    const found = await findImage(registry.store, `acme/draw-${unique}`, 'v1');
    expect(found).toMatchObject({ digest, gitCommit: { hash: unique, branch: 'main', message: 'A push' } });
    expect((await registry.store.get(services, `acme/draw-${unique}`))?.lastImageDigest).toBe(digest);
  });

  test('a layer that is pushed to two repositories is mounted instead of uploaded again', async () => {
    await docker('login', '-u', 'acme', '-p', registry.token, registry.host);
    await importImage(config, `${image}:v1`, unique);
    await docker('push', `${image}:v1`);
    const second = `${registry.host}/acme/paint-${unique}:v1`;
    await docker('tag', `${image}:v1`, second);
    const pushed = await docker('push', second);
    await docker('rmi', second);
    expect(pushed).toContain('Mounted from acme/draw-');
  });

  test('an engine pulls with a grant, as workers do', async () => {
    await docker('login', '-u', 'acme', '-p', registry.token, registry.host);
    await importImage(config, `${image}:v1`, unique);
    await docker('push', `${image}:v1`);
    await docker('rmi', `${image}:v1`);
    const access = [{ type: 'repository' as const, name: `acme/draw-${unique}`, actions: ['pull' as const] }];
    const registrytoken = await registry.grants.issue({ subject: 'node-1', access }, 60, new Date());
    await docker('logout', registry.host);
    await writeFile(join(config, 'config.json'), JSON.stringify({ auths: { [registry.host]: { registrytoken } } }));
    expect(await docker('pull', `${image}:v1`)).toContain('Downloaded newer image');
    await writeFile(join(config, 'config.json'), '{}');
  });

  test('an engine without a login pulls nothing, and cannot distinguish a private image from an absent one', async () => {
    await docker('logout', registry.host);
    await expect(docker('pull', `${image}:v1`)).rejects.toThrow(/unauthorized|denied/);
    await expect(docker('pull', `${registry.host}/acme/absent:v1`)).rejects.toThrow(/unauthorized|denied/);
  });
});

/** Creates an image of one file, with the labels that push tools write. */
async function importImage(config: string, name: string, hash: string): Promise<string> {
  const archive = pack();
  archive.entry({ name: 'file' }, hash);
  archive.finalize();
  const labels = ['LABEL', `hash=${hash}`, 'branch=main', 'message="A push"'].join(' ');
  const args = ['--config', config, 'import', '--change', labels, '-', name];
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = execFile('docker', args, { timeout: commandMs }, (error, stdout) => {
    if (error) reject(error);
    else resolve(stdout.trim());
  });
  if (child.stdin) archive.pipe(child.stdin);
  return await promise;
}

function whyNoEngine(): string | undefined {
  try {
    execFileSync('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: 5_000, stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return error instanceof Error ? (error.message.split('\n')[0] ?? 'unknown') : 'unknown';
  }
}
