/** The registry with skopeo. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { clientProgram } from '../kit/packages/client-packages.ts';
import { containersWords } from './containers-client.ts';
import type { ClientKind, ClientOptions, Login, PushOptions } from './client.ts';
import { digestInLayout, parseManifest } from './json.ts';
import { writeLayouts } from './layout.ts';
import type { LayoutTag } from './layout.ts';
import { codesOf } from './registry-server.ts';
import { describeClient, describeClientOnMongo } from './suite.ts';

const program = await clientProgram('skopeo');

const skopeo = kindOf(program);

describeClient(skopeo, (fixture) => {
  test('layers that another repository has are mounted', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('from:v1'));
    server.operations();
    await client.push('small', at('to:v1'));
    const operations = server.operations();
    expect(codesOf(operations, 'upload-start').filter((code) => code === 201)).toHaveLength(3);
    // skopeo never detects that the registry already has the config.
    expect(codesOf(operations, 'upload-append')).toEqual([202]);
  });

  test('an index is copied with all its images', async () => {
    const { client, server, layouts, at } = fixture();
    await client.copy(['--all', `oci:${layouts.folder}/index:index`, `docker://${at('many:v1')}`]);
    expect(await server.digestOf('many', 'v1')).toBe(await digestInLayout(join(layouts.folder, 'index')));
    await client.copy(['--all', `docker://${at('many:v1')}`, `docker://${at('more:v1')}`]);
    expect(await server.digestOf('more', 'v1')).toBe(await server.digestOf('many', 'v1'));
  });

  test('zstd layers', async () => {
    const { client, server, at } = fixture();
    // A new image: skopeo reuses layers that the registry has instead of compressing them again.
    const { folder } = await writeLayouts(join(server.place.folder, 'unseen'), ['small']);
    const source = `oci:${folder}/small:small`;
    await client.copy(['--dest-compress-format', 'zstd', '--dest-compress', source, `docker://${at('zstd:v1')}`]);
    const { layers = [] } = parseManifest(await client.run('inspect', ['--raw', `docker://${at('zstd:v1')}`]));
    expect(layers.map(({ mediaType }) => mediaType)).toEqual(
      Array(3).fill('application/vnd.oci.image.layer.v1.tar+zstd'),
    );
    expect(await client.pull(at('zstd:v1'))).toMatch(/^sha256:/);
  });

  test("an image is converted to docker's own format during a copy", async () => {
    const { client, layouts, at } = fixture();
    await client.copy(['--format', 'v2s2', `oci:${layouts.folder}/small:small`, `docker://${at('v2s2:v1')}`]);
    const { mediaType } = parseManifest(await client.run('inspect', ['--raw', `docker://${at('v2s2:v1')}`]));
    expect(mediaType).toBe('application/vnd.docker.distribution.manifest.v2+json');
  });
});

describeClientOnMongo(skopeo);

function kindOf(program: string | undefined): ClientKind<ReturnType<typeof openSkopeo>> {
  return {
    name: 'skopeo',
    installed: program !== undefined,
    deletes: true,
    words: containersWords,
    open: async (options, trust) => openSkopeo(program ?? 'skopeo', options, trust),
  };
}

function openSkopeo(program: string, { place, layouts }: ClientOptions, trust: boolean) {
  const { folder, host, security } = place;
  const authFile = ['--authfile', join(folder, 'auth.json')];
  const securityFlags = (side: '' | 'src-' | 'dest-') => {
    if (security === 'plain') return [`--${side}tls-verify=false`];
    return trust ? [`--${side}cert-dir`, security.authorityFolder] : [];
  };
  const run = async (command: string, args: string[], options: object = {}) => {
    const flags = command === 'copy' ? [] : securityFlags('');
    const all = ['--insecure-policy', '--tmpdir', folder, command, ...authFile, ...flags, ...args];
    return await runCommand(program, all, options);
  };
  const copy = async (args: string[], options: object = {}) =>
    await run('copy', ['--quiet', ...securityFlags('src-'), ...securityFlags('dest-'), ...args], options);
  let pulls = 0;
  return {
    run,
    copy,
    login: async ({ user, password }: Login) =>
      void (await run('login', ['-u', user, '--password-stdin', host], { input: password })),
    logout: async () => void (await runCommand(program, ['logout', ...authFile, host])),
    tags: async (repository: string) =>
      (JSON.parse(await run('list-tags', [`docker://${repository}`])) as { Tags: string[] }).Tags,
    remove: async (target: string) => void (await run('delete', [`docker://${target}`])),
    push: async (tag: LayoutTag, target: string, options: PushOptions = {}) =>
      void (await copy([`oci:${layouts.folder}/${tag}:${tag}`, `docker://${target}`], options)),
    pull: async (source: string) => {
      const into = join(folder, `pull-${(pulls += 1)}`);
      await copy([`docker://${source}`, `oci:${into}:pulled`]);
      return await digestInLayout(into);
    },
  };
}
