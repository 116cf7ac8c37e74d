// Takes about 10 s
/** The registry with podman. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { clientProgram } from '../kit/packages/client-packages.ts';
import type { ClientKind, ClientOptions, Login, PushOptions } from './client.ts';
import { containersWords, makeStore, removeStore, trustFlags } from './containers-store.ts';
import { parseManifest } from './json.ts';
import type { LayoutTag } from './layout.ts';
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

async function openPodman(program: string, { place, layouts }: ClientOptions, trust: boolean) {
  const { folder, host } = place;
  const stores = [join(folder, 'store')];
  const auth = { REGISTRY_AUTH_FILE: join(folder, 'auth.json') };
  const own = { ...(await makeStore(join(folder, 'store'))), ...auth };
  const flags = trustFlags(place, trust);
  const run = async (args: string[], options: object = {}) => await runCommand(program, args, { env: own, ...options });
  return {
    run,
    security: flags,
    login: async ({ user, password }: Login) =>
      void (await run(['login', ...flags, '-u', user, '--password-stdin', host], { input: password })),
    logout: async () => void (await run(['logout', host])),
    tags: async (repository: string) => {
      const found = await run(['search', ...flags, '--list-tags', '--format', 'json', repository]);
      return (JSON.parse(found) as { Tags: string[] }[]).flatMap(({ Tags }) => Tags);
    },
    push: async (tag: LayoutTag, target: string, options: PushOptions = {}) => {
      const image = await run(['pull', '--quiet', `oci:${layouts.folder}/${tag}:${tag}`]);
      await run(['push', '--quiet', ...flags, image.trim(), `docker://${target}`], options);
    },
    pull: async (source: string) => {
      const store = join(folder, `pull-${stores.length}`);
      stores.push(store);
      const env = { ...(await makeStore(store)), ...auth };
      await run(['pull', '--quiet', ...flags, source], { env });
      return (await run(['image', 'inspect', '--format', '{{.Digest}}', source], { env })).trim();
    },
    [Symbol.asyncDispose]: async () => {
      for (const store of stores) await removeStore(store);
    },
  };
}
