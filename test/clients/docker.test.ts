// Takes about 40 s
/** The registry with docker: each engine of this run, with its own command if it has one. */
import { spawn } from 'node:child_process';
import { cp, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findProgram, runCommand, tryCommand } from '../../setup/command.ts';
import { modernProgram } from '../kit/packages/client-packages.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import type { ClientKind, ClientOptions, Login, PushOptions } from './client.ts';
import { parseManifest } from './json.ts';
import type { LayoutTag } from './layout.ts';
import { codesOf } from './registry-server.ts';
import { describeClient, describeClientOnMongo } from './suite.ts';

/** Where engines look for the certificate authorities of registries. */
const trustFolder = '/etc/docker/certs.d';

/** Placeholder if there is no engine, so that the report lists the skipped tests. */
const noEngine: TestEngine = { kind: 'stable', host: '', version: '(none)' };

const engines = testEngines().length > 0 ? testEngines() : [noEngine];

for (const [i, engine] of engines.entries()) {
  const docker = await kindFor(engine);
  describeClient(docker, (fixture) => {
    test('layers that another repository has are mounted', async () => {
      const { client, server, at } = fixture();
      await client.push('small', at('from:v1'));
      server.operations();
      await client.push('small', at('to:v1'));
      const operations = server.operations();
      expect(codesOf(operations, 'upload-start').filter((code) => code === 201)).toHaveLength(3);
    });

    test('an index is created from pushed images, and pushed', async () => {
      const { client, server, at } = fixture();
      await client.push('small', at('many:small'));
      const many = at('many:v1');
      await client.run(['manifest', 'create', '--insecure', many, at('many:small')]);
      await client.run(['manifest', 'annotate', '--os', 'linux', '--arch', 'arm64', many, at('many:small')]);
      await client.run(['manifest', 'push', '--insecure', many]);
      const { manifests } = parseManifest(await client.run(['manifest', 'inspect', '--insecure', many]));
      expect(manifests).toMatchObject([{ digest: await server.digestOf('many', 'small') }]);
    });

    test('several tags are pushed at once', async () => {
      const { client, server, at } = fixture();
      for (const tag of ['v1', 'v2', 'v3']) await client.tag('small', at(`tags:${tag}`));
      await client.run(['push', '--all-tags', at('tags')]);
      for (const tag of ['v1', 'v2', 'v3'])
        expect(await server.digestOf('tags', tag)).toBe(await server.digestOf('tags', 'v1'));
    });
  });
  if (i === 0) describeClientOnMongo(docker);
}

async function kindFor(engine: TestEngine): Promise<ClientKind<ReturnType<typeof openDocker>>> {
  const own = engine.kind === 'modern' ? await modernProgram('bin/docker') : undefined;
  const program = own ?? (await findProgram('docker'));
  return {
    name: `docker ${engine.version}`,
    installed: program !== undefined && engine !== noEngine,
    deletes: false,
    // Only root can write to `trustFolder`.
    hasFixedTrust: process.getuid?.() !== 0,
    words: {
      wrongPassword: /Wrong credentials/,
      noLogin: /denied|unauthorized/,
      noRight: /denied: requested access to the resource is denied|denied: The access token/,
      absent: /not found|manifest unknown|name unknown|no such repository/i,
      untrusted: /certificate signed by unknown authority/,
    },
    open: async (options, trust) => {
      const { host, security } = options.place;
      if (security !== 'plain' && trust) {
        await mkdir(join(trustFolder, host), { recursive: true });
        await cp(security.authority, join(trustFolder, host, 'ca.crt'));
      }
      return openDocker({ program: program ?? 'docker', engine }, options);
    },
  };
}

function openDocker(
  { program, engine }: { readonly program: string; readonly engine: TestEngine },
  { place, layouts }: ClientOptions,
) {
  const { folder, host } = place;
  const env = { DOCKER_HOST: engine.host, DOCKER_CONFIG: join(folder, 'docker') };
  const run = async (args: string[], options: object = {}) => await runCommand(program, args, { env, ...options });
  /** The images that this test has added to the engine. */
  const images = new Set<string>();
  const nameOf = (tag: LayoutTag) => `${layouts.name}:${tag}`;
  const load = async (tag: LayoutTag) => {
    if (images.has(nameOf(tag))) return;
    images.add(nameOf(tag));
    const tar = spawn('tar', ['-C', join(layouts.folder, tag), '-cf', '-', '.'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await run(['load', '--quiet'], { input: tar.stdout });
  };
  const tag = async (from: LayoutTag, target: string) => {
    await load(from);
    images.add(target);
    await run(['tag', nameOf(from), target]);
  };
  const removeAll = async () => {
    if (images.size === 0) return;
    await tryCommand(program, ['rmi', '--force', ...images], { env });
    images.clear();
  };
  return {
    run,
    tag,
    login: async ({ user, password }: Login) =>
      void (await run(['login', '-u', user, '--password-stdin', host], { input: password })),
    logout: async () => void (await run(['logout', host])),
    push: async (from: LayoutTag, target: string, options: PushOptions = {}) => {
      await tag(from, target);
      await run(['push', '--quiet', target], options);
    },
    /** Removes all images first, so that the engine downloads all layers. */
    pull: async (source: string) => {
      await removeAll();
      images.add(source);
      const output = await run(['pull', source]);
      await removeAll();
      return /Digest: (sha256:[0-9a-f]{64})/.exec(output)?.[1] ?? output;
    },
    [Symbol.asyncDispose]: async () => {
      await removeAll();
      await rm(join(trustFolder, host), { recursive: true, force: true });
    },
  };
}
