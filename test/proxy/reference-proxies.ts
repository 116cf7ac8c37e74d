/** nginx and haproxy as reverse proxies, with which the proxy's reading of requests is compared. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../core/clock/system-clock.ts';
import { endProcess } from '../kit/machine/end-process.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { proxyProgram } from '../kit/packages/proxy-programs.ts';
import type { ProxyProgram, Runnable } from '../kit/packages/proxy-programs.ts';
import { RecordingBackend } from './recording-backend.ts';

/** A path through a reference proxy to its own backend. */
export interface ReferenceLane {
  readonly path: string;
  readonly backend: RecordingBackend;
}

export interface ReferenceProxy extends AsyncDisposable {
  readonly name: ProxyProgram;
  readonly lanes: readonly ReferenceLane[];
}

const startLimitMs = 60_000;

/** Starts a reference proxy with independent lanes, or returns why it cannot be started. */
export async function openReferenceProxy(
  name: ProxyProgram,
  laneCount: number,
): Promise<ReferenceProxy | { readonly missing: string }> {
  const program = await proxyProgram(name);
  if ('missing' in program) return program;
  await using opened = new AsyncDisposableStack();
  const { path: folder } = opened.use(await temporaryFolder());
  const lanes: ReferenceLane[] = [];
  for (let i = 0; i < laneCount; i += 1) {
    const backend = opened.use(await RecordingBackend.open(join(folder, `backend-${i}`)));
    lanes.push({ path: join(folder, `lane-${i}`), backend });
  }
  await mkdir(join(folder, 'temporary'));
  const settings = join(folder, 'settings');
  await writeFile(settings, name === 'nginx' ? nginxSettings(folder, laneCount) : haproxySettings(folder, laneCount));
  const args = name === 'nginx' ? ['-p', folder, '-c', settings, '-e', 'stderr'] : ['-f', settings, '-db'];
  opened.use(await start(program, args, lanes));
  const resources = opened.move();
  return { name, lanes, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

async function start(program: Runnable, args: string[], lanes: readonly ReferenceLane[]): Promise<AsyncDisposable> {
  const child = spawn(program.path, args, {
    env: { ...process.env, ...program.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output = `${output}${text}`.slice(-4_000)));
  const deadlineMs = Date.now() + startLimitMs;
  const isReady = async () => (await Promise.all(lanes.map(({ path }) => accepts(path)))).every(Boolean);
  while (!(await isReady())) {
    if (child.exitCode !== null || Date.now() > deadlineMs) {
      child.kill();
      throw new Error(`${program.path} does not start: ${output}`);
    }
    await systemClock.sleep(20);
  }
  return { [Symbol.asyncDispose]: async () => void (await endProcess(child, 'SIGTERM')) };
}

async function accepts(path: string): Promise<boolean> {
  const socket = connect(path);
  const [event] = await Promise.race([
    once(socket, 'connect').then(() => ['connect']),
    once(socket, 'error').then(() => ['error']),
  ]).catch(() => ['error']);
  socket.destroy();
  return event === 'connect';
}

function nginxSettings(folder: string, laneCount: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const lanes = Array.from({ length: laneCount }, (_, i) => [
    `upstream backend-${i} { server unix:${folder}/backend-${i}; keepalive 8; }`,
    `server { listen unix:${folder}/lane-${i}; location / { proxy_pass http://backend-${i}; } }`,
  ]);
  return [
    'daemon off;',
    'master_process off;',
    `pid ${folder}/pid;`,
    'events { worker_connections 1024; }',
    'http {',
    'access_log off;',
    ...temporary.map((each) => `${each}_temp_path ${folder}/temporary/${each};`),
    'merge_slashes off;',
    'keepalive_requests 1000000;',
    'large_client_header_buffers 4 64k;',
    'proxy_http_version 1.1;',
    'proxy_set_header Connection "";',
    'proxy_set_header Host $http_host;',
    ...lanes.flat(),
    '}',
    '',
  ].join('\n');
}

function haproxySettings(folder: string, laneCount: number): string {
  const lanes = Array.from({ length: laneCount }, (_, i) => [
    `frontend lane-${i}`,
    `  bind unix@${folder}/lane-${i}`,
    `  default_backend backend-${i}`,
    `backend backend-${i}`,
    `  server backend unix@${folder}/backend-${i}`,
  ]);
  return [
    'global',
    '  maxconn 1000',
    '  nbthread 1',
    'defaults',
    '  mode http',
    '  option http-keep-alive',
    '  timeout connect 5s',
    '  timeout client 30s',
    '  timeout server 30s',
    ...lanes.flat(),
    '',
  ].join('\n');
}
