// Takes about 15 s
/** The registry with ctr, which uses containerd's registry client: the releases of Debian 12 and of Debian's unstable suite. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { findProgram, runCommand } from '../../setup/command.ts';
import { endedWithParent, endProcess } from '../kit/machine/end-process.ts';
import { modernProgram } from '../kit/packages/client-packages.ts';
import type { ClientKind, ClientOptions, Login, PushOptions } from './client.ts';
import { digestInLayout } from './json.ts';
import type { LayoutTag } from './layout.ts';
import { codesOf } from './registry-server.ts';
import { describeClient } from './suite.ts';

/** A containerd answers within a second. */
const startTimeoutMs = 60_000;

/** Pause between two attempts to reach it. */
const retryMs = 50;

interface Programs {
  readonly containerd: string;
  readonly ctr: string;
  /** Whether ctr leaves transfers to containerd by default. */
  readonly transfers: boolean;
}

const nothing: Programs = { containerd: 'containerd', ctr: 'ctr', transfers: false };

for (const [name, programs] of [
  ['containerd 1', await stablePrograms()],
  ['containerd 2', await modernPrograms()],
] as const) {
  describeClient(kindOf(name, programs), (fixture) => {
    test('a layer is sent in one request, without a PATCH', async () => {
      const { client, server, at } = fixture();
      server.operations();
      await client.push('index', at('many:v1'));
      const operations = server.operations();
      expect(codesOf(operations, 'upload-append')).toEqual([]);
      expect(new Set(codesOf(operations, 'upload-finish'))).toEqual(new Set([201]));
      expect(await server.digestOf('many', 'v1')).toBe(await digestInLayout(join(client.layouts.folder, 'index')));
    });
  });
}

async function stablePrograms(): Promise<Programs | undefined> {
  const [containerd, ctr] = [await findProgram('containerd'), await findProgram('ctr')];
  if (process.getuid?.() !== 0 || !containerd || !ctr) return undefined;
  return { containerd, ctr, transfers: !(await runCommand(ctr, ['--version'])).includes(' 1.') };
}

async function modernPrograms(): Promise<Programs | undefined> {
  const [containerd, ctr] = [await modernProgram('bin/containerd'), await modernProgram('bin/ctr')];
  if (process.getuid?.() !== 0 || !containerd || !ctr) return undefined;
  return { containerd, ctr, transfers: true };
}

function kindOf(name: string, programs: Programs | undefined): ClientKind<Awaited<ReturnType<typeof openCtr>>> {
  return {
    name: `ctr of ${name}`,
    installed: programs !== undefined,
    deletes: false,
    words: {
      wrongPassword: /401 Unauthorized/,
      noLogin: /authorization failed/,
      noRight: /authorization failed/,
      absent: /not found/,
      untrusted: /certificate signed by unknown authority/,
    },
    open: async (options, trust) => await openCtr(programs ?? nothing, options, trust),
  };
}

async function openCtr(programs: Programs, { place, layouts }: ClientOptions, trust: boolean) {
  const { folder, security } = place;
  const { child, socket } = await startContainerd(programs, join(folder, 'containerd'));
  let login: Login | undefined;
  const run = async (args: string[], options: object = {}) =>
    await runCommand(programs.ctr, ['-a', socket, ...args], options);
  const remote = () => [
    ...(security === 'plain' ? ['--plain-http'] : trust ? ['--tlscacert', security.authority] : []),
    ...(login ? ['--user', `${login.user}:${login.password}`] : []),
  ];
  // A transfer by containerd would need the test's certificate in containerd's configuration.
  const local = programs.transfers ? ['--local'] : [];
  let pulls = 0;
  return {
    layouts,
    // ctr has no login: each command carries the credentials.
    login: async (credentials: Login) => void (login = credentials),
    logout: async () => void (login = undefined),
    push: async (tag: LayoutTag, target: string, options: PushOptions = {}) => {
      const archive = join(folder, `${tag}.tar`);
      const { folder: from, name } = layouts;
      await runCommand('tar', ['-C', join(from, tag), '-cf', archive, '--exclude=manifest.json', '.']);
      await run(['images', 'import', '--no-unpack', '--all-platforms', '--base-name', name, archive]);
      await run(['images', 'tag', '--force', `${name}:${tag}`, target]);
      const flags = [...remote(), ...(security === 'plain' ? [] : local)];
      await run(['images', 'push', ...flags, target], options);
    },
    pull: async (source: string) => {
      // Namespaces do not share content.
      const namespace = ['--namespace', `pull-${(pulls += 1)}`];
      await run([...namespace, 'images', 'pull', '--snapshotter', 'native', ...local, ...remote(), source]);
      const list = await run([...namespace, 'images', 'ls', `name==${source}`]);
      return /sha256:[0-9a-f]{64}/.exec(list)?.[0] ?? list;
    },
    [Symbol.asyncDispose]: async () => void (await endProcess(child, 'SIGTERM')),
  };
}

async function startContainerd(
  { containerd, ctr }: Programs,
  folder: string,
): Promise<{ child: ChildProcess; socket: string }> {
  await mkdir(folder);
  const socket = join(folder, 'socket');
  // Plugins that would use files outside this folder.
  const disabled = ['grpc.v1.cri', 'cri.v1.images', 'cri.v1.runtime', 'internal.v1.opt', 'nri.v1.nri'];
  const config = [
    'version = 2',
    `root = "${folder}/root"`,
    `state = "${folder}/state"`,
    `disabled_plugins = [${disabled.map((name) => `"io.containerd.${name}"`).join(', ')}]`,
    '[grpc]',
    `address = "${socket}"`,
    '[plugins."io.containerd.metadata.v1.bolt"]',
    'content_sharing_policy = "isolated"',
  ];
  await writeFile(join(folder, 'config.toml'), config.join('\n'));
  await using log = await open(join(folder, 'log'), 'a');
  const path = [dirname(containerd), process.env['PATH'] ?? ''].join(delimiter);
  const [program, ...args] = endedWithParent(containerd, 'setpriv');
  const child = spawn(program, [...args, '--config', join(folder, 'config.toml')], {
    stdio: ['ignore', log.fd, log.fd],
    env: { ...process.env, PATH: path },
  });
  const answers = async () => void (await runCommand(ctr, ['-a', socket, 'version']));
  await vi.waitFor(answers, { timeout: startTimeoutMs, interval: retryMs }).catch(async () => {
    await endProcess(child, 'SIGTERM');
    throw new Error(`containerd did not start:\n${await readFile(join(folder, 'log'), 'utf8')}`);
  });
  return { child, socket };
}
