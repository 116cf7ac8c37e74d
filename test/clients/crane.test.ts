/** The registry with crane (go-containerregistry). */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { clientProgram } from '../kit/packages/client-packages.ts';
import type { ClientKind, ClientOptions, Login, PushOptions } from './client.ts';
import { digestInLayout, parseManifest } from './json.ts';
import type { LayoutTag } from './layout.ts';
import { codesOf } from './registry-server.ts';
import { describeClient } from './suite.ts';

const program = await clientProgram('crane');

const crane = kindOf(program);

describeClient(crane, (fixture) => {
  test('an image copied to another repository is mounted', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('from:v1'));
    server.operations();
    await client.run(['copy', at('from:v1'), at('to:v1')]);
    const operations = server.operations();
    expect(codesOf(operations, 'upload-start')).toEqual([201, 201, 201, 201]);
    expect(codesOf(operations, 'upload-append')).toEqual([]);
    expect(await server.digestOf('to', 'v1')).toBe(await server.digestOf('from', 'v1'));
  });

  test('an index is created from pushed images, and pulled by platform', async () => {
    const { client, server, at } = fixture();
    await client.push('index', at('many:v1'));
    await client.push('small', at('many:small'));
    await client.run(['index', 'append', '-m', at('many:small'), '-t', at('many:v2'), at('many:v1')]);
    const { manifests = [] } = parseManifest(await client.run(['manifest', at('many:v2')]));
    expect(manifests).toHaveLength(3);
    expect(manifests.at(-1)?.digest).toBe(await server.digestOf('many', 'small'));
    expect(await client.run(['digest', '--platform', 'linux/arm64', at('many:v2')])).toContain(
      manifests[1]?.digest ?? 'none',
    );
  });

  test('a deletion needs only the right to push', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('deleted:v1'));
    server.operations();
    await client.run(['delete', `${at('deleted')}@${await server.digestOf('deleted', 'v1')}`]);
    expect(codesOf(server.operations(), 'manifest-delete')).toEqual([202]);
    expect(await server.digestOf('deleted', 'v1')).toBeUndefined();
  });
});

function kindOf(program: string | undefined): ClientKind<ReturnType<typeof openCrane>> {
  return {
    name: 'crane',
    installed: program !== undefined,
    deletes: true,
    words: {
      wrongPassword: /Wrong credentials/,
      noLogin: /UNAUTHORIZED: Log in first/,
      noRight: /DENIED/,
      absent: /MANIFEST_UNKNOWN|NAME_UNKNOWN/,
      untrusted: /certificate signed by unknown authority/,
    },
    open: async (options, trust) => openCrane(program ?? 'crane', options, trust),
  };
}

function openCrane(program: string, { place, layouts }: ClientOptions, trust: boolean) {
  const { folder, host, security } = place;
  const authority = trust && security !== 'plain' ? { SSL_CERT_FILE: security.authority } : {};
  const env = { DOCKER_CONFIG: join(folder, 'crane'), ...authority };
  const run = async (args: string[], options: object = {}) => await runCommand(program, args, { env, ...options });
  let pulls = 0;
  return {
    run,
    login: async ({ user, password }: Login) =>
      void (await run(['auth', 'login', '-u', user, '--password-stdin', host], { input: password })),
    tags: async (repository: string) => (await run(['ls', repository])).trim().split('\n'),
    remove: async (target: string) => void (await run(['delete', target])),
    logout: async () => void (await run(['auth', 'logout', host])),
    push: async (tag: LayoutTag, target: string, options: PushOptions = {}) =>
      void (await run(['push', join(layouts.folder, tag), target], options)),
    pull: async (source: string) => {
      const into = join(folder, `pull-${(pulls += 1)}`);
      await run(['pull', '--format', 'oci', source, into]);
      return await digestInLayout(into);
    },
  };
}
