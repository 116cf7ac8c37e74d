/** The registry with oras, which stores files and attachments in registries. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { clientProgram } from '../kit/packages/client-packages.ts';
import type { ClientKind, ClientOptions, Login, PushOptions } from './client.ts';
import { digestInLayout, parseManifest } from './json.ts';
import type { DescriptorParts } from './json.ts';
import type { LayoutTag } from './layout.ts';
import { describeClient } from './suite.ts';

const program = await clientProgram('oras');

const oras = kindOf(program);

describeClient(oras, (fixture) => {
  test('files are pushed and pulled', async () => {
    const { client, server, at } = fixture();
    const folder = join(server.place.folder, 'files');
    await mkdir(join(folder, 'got'), { recursive: true });
    await writeFile(join(folder, 'words.txt'), 'hello');
    await writeFile(join(folder, 'nothing.txt'), '');
    const files = ['words.txt:text/plain', 'nothing.txt'];
    await client.run(['push'], ['--artifact-type', 'test/files', at('files:v1'), ...files], { cwd: folder });
    await client.run(['pull'], ['--output', 'got', at('files:v1')], { cwd: folder });
    expect(await readFile(join(folder, 'got/words.txt'), 'utf8')).toBe('hello');
    expect(await readFile(join(folder, 'got/nothing.txt'), 'utf8')).toBe('');
  });

  test('attachments of an image are found by type, on several levels, and copied with it', async () => {
    const { client, server, at } = fixture();
    const folder = join(server.place.folder, 'attached');
    await mkdir(folder);
    for (const name of ['bill', 'signature']) await writeFile(join(folder, name), `a ${name}`);
    await client.push('small', at('subject:v1'));
    const attach = async (type: string, to: string) =>
      await client.run(['attach'], ['--artifact-type', `test/${type}`, to, type], { cwd: folder });
    await attach('signature', at('subject:v1'));
    await attach('bill', at('subject:v1'));
    const [bill, ...others] = await client.referrers(at('subject:v1'), ['--artifact-type', 'test/bill']);
    expect([bill?.artifactType, others]).toEqual(['test/bill', []]);
    await attach('signature', `${at('subject')}@${bill?.digest}`);
    expect(await client.referrers(at('subject:v1'))).toHaveLength(2);
    expect(await client.referrers(`${at('subject')}@${bill?.digest}`)).toHaveLength(1);

    await client.copy(['--recursive', at('subject:v1'), at('copied:v1')]);
    expect(await client.referrers(at('copied:v1'))).toHaveLength(2);
    expect(await client.referrers(`${at('copied')}@${bill?.digest}`)).toHaveLength(1);
  });

  test('an index is created from pushed images', async () => {
    const { client, at } = fixture();
    await client.push('index', at('many:v1'));
    await client.push('small', at('many:small'));
    const { manifests = [] } = parseManifest(await client.run(['manifest', 'fetch'], [at('many:v1')]));
    await client.run(['manifest', 'index', 'create'], [at('many:v2'), 'small', manifests[0]?.digest ?? '']);
    const made = parseManifest(await client.run(['manifest', 'fetch'], [at('many:v2')]));
    expect(made.manifests).toHaveLength(2);
  });
});

function kindOf(program: string | undefined): ClientKind<ReturnType<typeof openOras>> {
  return {
    name: 'oras',
    installed: program !== undefined,
    deletes: true,
    words: {
      wrongPassword: /Wrong credentials/,
      noLogin: /unauthorized|basic credential not found/i,
      noRight: /denied/i,
      absent: /not found/,
      untrusted: /certificate signed by unknown authority/,
    },
    open: async (options, trust) => openOras(program ?? 'oras', options, trust),
  };
}

function openOras(program: string, { place, layouts }: ClientOptions, trust: boolean) {
  const { folder, host, security } = place;
  const env = { DOCKER_CONFIG: join(folder, 'oras') };
  const securityFlags = (side: '' | 'from-' | 'to-') => {
    if (security === 'plain') return [`--${side}plain-http`];
    return trust ? [`--${side}ca-file`, security.authority] : [];
  };
  const run = async (command: string[], args: string[], options: object = {}) =>
    await runCommand(program, [...command, ...securityFlags(''), ...args], { env, ...options });
  const copyWith = async (flags: string[], args: string[], options: object = {}) =>
    await runCommand(program, ['cp', ...flags, ...args], { env, ...options });
  let pulls = 0;
  return {
    run,
    copy: async (args: string[]) => await copyWith([...securityFlags('from-'), ...securityFlags('to-')], args),
    referrers: async (subject: string, args: string[] = []) => {
      const output = await run(['discover'], ['--format', 'json', '--depth', '1', ...args, subject]);
      return (JSON.parse(output) as { referrers: DescriptorParts[] }).referrers;
    },
    login: async ({ user, password }: Login) =>
      void (await run(['login'], ['-u', user, '--password-stdin', host], { input: password })),
    logout: async () => void (await runCommand(program, ['logout', host], { env })),
    tags: async (repository: string) => (await run(['repo', 'tags'], [repository])).trim().split('\n'),
    remove: async (target: string) => void (await run(['manifest', 'delete'], ['--force', target])),
    push: async (tag: LayoutTag, target: string, options: PushOptions = {}) => {
      const flags = ['--from-oci-layout', ...securityFlags('to-')];
      await copyWith(flags, [`${layouts.folder}/${tag}:${tag}`, target], options);
    },
    pull: async (source: string) => {
      const into = join(folder, `pull-${(pulls += 1)}`);
      await copyWith(['--to-oci-layout', ...securityFlags('from-')], [source, `${into}:pulled`]);
      return await digestInLayout(into);
    },
  };
}
