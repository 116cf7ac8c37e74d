/**
 * The registry with buildx (BuildKit), in an engine that stores images in containerd (the default of new engines):
 * multi-platform images with attestations, and build caches.
 */
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { clientProgram, modernProgram } from '../kit/packages/client-packages.ts';
import { startEngine, withoutFirewall } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { parseManifest } from './json.ts';
import { codesOf, openRegistryServer } from './registry-server.ts';
import type { RegistryServer } from './registry-server.ts';

const docker = await modernProgram('bin/docker');
const buildx = await clientProgram('docker-buildx');

// If this run has a modern engine, this file can start another.
const canStart = testEngines().some(({ kind }) => kind === 'modern') && process.getuid?.() === 0;

describe.skipIf(!canStart || !docker || !buildx)('buildx, on an engine with images in containerd', () => {
  let server: RegistryServer;
  let env: Record<string, string>;
  const owned = new AsyncDisposableStack();
  const run = async (...args: string[]) => await runCommand(docker ?? '', args, { env, cwd: server.place.folder });
  const at = (name: string) => `${server.place.host}/acme/${name}`;
  const manifest = async (service: string, reference: string) => {
    const { body } = await server.registry.as(`/v2/acme/${service}/manifests/${reference}`);
    return parseManifest(body.toString());
  };

  beforeAll(async () => {
    server = owned.use(await openRegistryServer());
    const engine = owned.use(
      await startEngine('modern', ['--feature', 'containerd-snapshotter=true', ...withoutFirewall]),
    );
    const config = join(server.place.folder, 'docker');
    await mkdir(join(config, 'cli-plugins'), { recursive: true });
    await symlink(buildx ?? '', join(config, 'cli-plugins/docker-buildx'));
    env = { DOCKER_HOST: engine.host, DOCKER_CONFIG: config };
    await mkdir(join(server.place.folder, 'context'));
    await writeFile(join(server.place.folder, 'context/file'), 'a file');
    await writeFile(join(server.place.folder, 'context/Dockerfile'), 'FROM scratch\nCOPY file /file\nWORKDIR /work\n');
    const login = ['login', '-u', 'acme', '--password-stdin', server.place.host];
    await runCommand(docker ?? '', login, { env, input: server.password });
  });
  afterAll(async () => await owned.disposeAsync());

  test('an image for two platforms is built and pushed with its attestations, and pulled', async () => {
    const platforms = ['--platform', 'linux/amd64,linux/arm64', '--provenance=true', '--sbom=false'];
    await run('buildx', 'build', '--push', ...platforms, '--tag', at('built:v1'), 'context');
    const { manifests = [] } = await manifest('built', 'v1');
    const types = manifests.map((each) => each.annotations?.['vnd.docker.reference.type']);
    expect(types).toEqual([undefined, undefined, 'attestation-manifest', 'attestation-manifest']);
    await run('rmi', '--force', at('built:v1'));
    await run('pull', '--platform', 'linux/arm64', at('built:v1'));
    expect(await run('inspect', '--format', '{{.Architecture}}', at('built:v1'))).toBe('arm64\n');
  });

  test("a build's cache is an index of layers, which another build uses", async () => {
    const build = async (...args: string[]) =>
      await run('buildx', 'build', '--push', '--progress', 'plain', '--tag', at('cached:v1'), ...args, 'context');
    const cache = `type=registry,ref=${at('cached:cache')}`;
    await build('--cache-to', `${cache},mode=max,image-manifest=false,oci-mediatypes=true`);
    const { mediaType, manifests = [] } = await manifest('cached', 'cache');
    expect(mediaType).toBe('application/vnd.oci.image.index.v1+json');
    expect(manifests.map((each) => each.mediaType)).toContain('application/vnd.buildkit.cacheconfig.v0');
    await run('builder', 'prune', '--all', '--force');
    await run('rmi', '--force', at('cached:v1'));
    server.operations();
    await build('--cache-from', cache);
    const configs = manifests.filter((each) => each.mediaType === 'application/vnd.buildkit.cacheconfig.v0');
    const reads = server.operations().filter(({ digest }) => digest === configs[0]?.digest);
    expect(codesOf(reads, 'blob-get')).toContain(200);
  });

  test('an image pushed under one name is mounted under another', async () => {
    await run('buildx', 'build', '--push', '--provenance=false', '--tag', at('from:v1'), 'context');
    await run('pull', at('from:v1'));
    await run('tag', at('from:v1'), at('to:v1'));
    server.operations();
    await run('push', at('to:v1'));
    expect(codesOf(server.operations(), 'upload-finish')).toEqual([]);
    expect(await server.digestOf('to', 'v1')).toBe(await server.digestOf('from', 'v1'));
  });
});
