// Takes about 10 s
/** The registry with regctl (regclient). */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { clientProgram } from '../kit/packages/client-packages.ts';
import type { ClientKind, ClientOptions, Login, PushOptions } from './client.ts';
import { digestInLayout, parseManifest } from './json.ts';
import type { LayoutTag } from './layout.ts';
import { largeBytes, writeLayouts } from './layout.ts';
import { codesOf } from './registry-server.ts';
import { describeClient } from './suite.ts';

const program = await clientProgram('regctl');

const regctl = kindOf(program);

/** Size of the chunks in which regctl sends a large layer. */
const chunkBytes = 2 * 1024 * 1024;

describeClient(regctl, (fixture) => {
  test('a large layer is sent in chunks with content ranges', async () => {
    const { client, server, layouts, at } = fixture();
    await client.configure(['--blob-max', `${chunkBytes}`, '--blob-chunk', `${chunkBytes}`]);
    // A new image, because regctl mounts layers that any repository has.
    const { folder } = await writeLayouts(join(layouts.folder, 'chunked'), ['large']);
    server.operations();
    await client.run(['image', 'copy', `ocidir://${folder}/large:large`, at('chunked:v1')]);
    const codes = codesOf(server.operations(), 'upload-append');
    expect(codes.length).toBeGreaterThanOrEqual(largeBytes / chunkBytes);
    expect(new Set(codes)).toEqual(new Set([202]));
    expect(await client.pull(at('chunked:v1'))).toBe(await server.digestOf('chunked', 'v1'));
  });

  test('layers that another repository has are mounted', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('from:v1'));
    server.operations();
    await client.run(['image', 'copy', at('from:v1'), at('to:v1')]);
    const operations = server.operations();
    expect(codesOf(operations, 'upload-start')).toEqual([201, 201, 201, 201]);
    expect(codesOf(operations, 'upload-finish')).toEqual([]);
  });

  test('an index is copied with all its images and attachments', async () => {
    const { client, server, at } = fixture();
    await client.push('index', at('many:v1'));
    const bill = ['artifact', 'put', '--artifact-type', 'test/bill', '--subject', at('many:v1')];
    await client.run(bill, { input: 'a bill' });
    await client.run(['image', 'copy', '--referrers', at('many:v1'), at('more:v1')]);
    expect(await server.digestOf('more', 'v1')).toBe(await server.digestOf('many', 'v1'));
    const listed = await client.run(['artifact', 'list', '--format', '{{jsonPretty .Manifest}}', at('more:v1')]);
    expect(parseManifest(listed).manifests).toMatchObject([{ artifactType: 'test/bill' }]);
  });

  test('deletes a tag but not its manifest, then a manifest', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('tags:v1'));
    await client.push('small', at('tags:v2'));
    await client.run(['tag', 'delete', at('tags:v1')]);
    expect(await client.tags(at('tags'))).toEqual(['v2']);
    await client.run(['manifest', 'delete', `${at('tags')}@${await server.digestOf('tags', 'v2')}`]);
    expect(await server.digestOf('tags', 'v2')).toBeUndefined();
  });
});

function kindOf(program: string | undefined): ClientKind<Awaited<ReturnType<typeof openRegctl>>> {
  return {
    name: 'regctl',
    installed: program !== undefined,
    deletes: true,
    words: {
      wrongPassword: /unauthorized|Wrong credentials/i,
      noLogin: /unauthorized/i,
      // regctl reports only the status.
      noRight: /unauthorized/,
      absent: /not found/,
      untrusted: /certificate signed by unknown authority/,
    },
    open: async (options, trust) => await openRegctl(program ?? 'regctl', options, trust),
  };
}

async function openRegctl(program: string, { place, layouts }: ClientOptions, trust: boolean) {
  const { folder, host, security } = place;
  const env = { REGCTL_CONFIG: join(folder, 'regctl.json'), DOCKER_CONFIG: join(folder, 'none') };
  const run = async (args: string[], options: object = {}) => await runCommand(program, args, { env, ...options });
  const configure = async (flags: string[]) => void (await run(['registry', 'set', '--skip-check', ...flags, host]));
  if (security === 'plain') await configure(['--tls', 'disabled']);
  else if (trust) await configure(['--cacert', await readFile(security.authority, 'utf8')]);
  let pulls = 0;
  return {
    run,
    configure,
    login: async ({ user, password }: Login) =>
      void (await run(['registry', 'login', '-u', user, '--pass-stdin', host], { input: password })),
    logout: async () => void (await run(['registry', 'logout', host])),
    tags: async (repository: string) => (await run(['tag', 'ls', repository])).trim().split('\n'),
    remove: async (target: string) => void (await run(['tag', 'delete', target])),
    push: async (tag: LayoutTag, target: string, options: PushOptions = {}) =>
      void (await run(['image', 'copy', `ocidir://${layouts.folder}/${tag}:${tag}`, target], options)),
    pull: async (source: string) => {
      const into = join(folder, `pull-${(pulls += 1)}`);
      await run(['image', 'copy', source, `ocidir://${into}:pulled`]);
      return await digestInLayout(into);
    },
  };
}
