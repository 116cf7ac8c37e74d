// Takes about 10 s
/** The registry with podman. */
import { expect, test } from 'vitest';
import { clientProgram } from '../kit/packages/client-packages.ts';
import type { ClientKind, ClientOptions } from './client.ts';
import { containersWords, openContainersClient } from './containers-client.ts';
import { parseManifest } from './json.ts';
import { codesOf } from './registry-server.ts';
import { describeClient } from './suite.ts';

// Without root, podman needs user namespaces and programs that set them up.
const program = process.getuid?.() === 0 ? await clientProgram('podman') : undefined;

const podman = kindOf(program);

describeClient(podman, (fixture) => {
  test('layers that another repository has are mounted', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('from:v1'));
    server.operations();
    await client.push('small', at('to:v1'));
    expect(codesOf(server.operations(), 'upload-start').filter((code) => code === 201)).toHaveLength(3);
  });

  test('an index is created from images and pushed with them', async () => {
    const { client, server, layouts, at } = fixture();
    await client.run(['manifest', 'create', 'many']);
    await client.run(['manifest', 'add', '--all', 'many', `oci:${layouts.folder}/index:index`]);
    await client.run(['manifest', 'push', '--all', ...client.security, 'many', `docker://${at('many:v1')}`]);
    const answer = await server.registry.as('/v2/acme/many/manifests/v1');
    expect(parseManifest(answer.body.toString()).manifests).toHaveLength(2);
    await client.run(['pull', ...client.security, '--arch', 'arm64', at('many:v1')]);
    expect(await client.run(['image', 'inspect', '--format', '{{.Architecture}}', at('many:v1')])).toBe('arm64\n');
  });
});

function kindOf(program: string | undefined): ClientKind<Awaited<ReturnType<typeof openPodman>>> {
  return {
    name: 'podman',
    installed: program !== undefined,
    deletes: false,
    words: containersWords,
    open: async (options, trust) => await openPodman(program ?? 'podman', options, trust),
  };
}

async function openPodman(program: string, options: ClientOptions, trust: boolean) {
  const inspect = ['image', 'inspect', '--format', '{{.Digest}}'];
  const client = await openContainersClient(program, options, { trust, inspect });
  return {
    ...client,
    tags: async (repository: string) => {
      const found = await client.run(['search', ...client.security, '--list-tags', '--format', 'json', repository]);
      return (JSON.parse(found) as { Tags: string[] }[]).flatMap(({ Tags }) => Tags);
    },
  };
}
