/** The proxies that are compared: each does the same work for the same backend, in one process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram } from '../../setup/command.ts';
import { endProcess } from '../../test/kit/machine/end-process.ts';
import { freePort } from '../../test/kit/machine/free-port.ts';
import { installedFromNpm } from '../../test/kit/packages/npm-packages.ts';
import { proxyProgram } from '../../test/kit/packages/proxy-programs.ts';
import type { ProxyProgram } from '../../test/kit/packages/proxy-programs.ts';
import { untilPortOpen } from '../until-port-open.ts';
import { haproxySettings, haproxyUsers, nginxBackendSettings, nginxSettings } from './settings.ts';

/** A running server. */
export interface Peer extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
}

/** The requests that a proxy forwards. */
export interface Work {
  /** The first segment of the path, which the backend does not see. */
  readonly token: string;
  readonly backendPort: number;
}

/** The release that is compared. */
const configurableHttpProxy = 'configurable-http-proxy@5.1.0';

/** Starts nginx with the requested files, as the backend of all proxies. */
export async function startBackend(folder: string, applicationPort: number): Promise<Peer> {
  const port = await freePort();
  await mkdir(join(folder, 'temporary'), { recursive: true });
  return await startProgram('nginx', folder, nginxBackendSettings({ folder, port, applicationPort }), port);
}

/** Starts the backend that reads uploads. */
export async function startUploadReader(): Promise<Peer> {
  const python = await findProgram('python3');
  if (python === undefined) throw new Error('python3 is not installed');
  const child = spawn(python, [join(import.meta.dirname, 'upload-reader.py')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { port: Number(line.toString()), ...running(child) };
}

export async function startNginx(folder: string, work: Work): Promise<Peer> {
  const port = await freePort();
  await mkdir(join(folder, 'temporary'), { recursive: true });
  return await startProgram('nginx', folder, nginxSettings({ ...work, folder, port }), port);
}

export async function startHaproxy(folder: string, work: Work): Promise<Peer> {
  const port = await freePort();
  await mkdir(folder, { recursive: true });
  const users = join(folder, 'users');
  await writeFile(users, haproxyUsers(work.token));
  return await startProgram('haproxy', folder, haproxySettings({ ...work, port, users }), port);
}

/** Starts Berth's proxy alone, with its own store and bus. */
export async function startBerth({ token, backendPort }: Work, routes = 1): Promise<Peer & { readonly token: string }> {
  const program = join(import.meta.dirname, 'berth.ts');
  const child = spawn(process.execPath, [program, String(backendPort), token, String(routes)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const opened = JSON.parse(line.toString()) as { port: number; token: string };
  return { ...opened, ...running(child) };
}

/** Berth's proxy with the tokens of all its routes. */
export interface ManyRoutes extends Peer {
  readonly tokens: readonly string[];
}

/** Starts Berth's proxy with routes to a hundred backends, on the embedded store or on MongoDB. */
export async function startManyRoutes(options: {
  readonly folder: string;
  readonly backendPort: number;
  readonly routes: number;
  readonly mongodbUrl: string | undefined;
}): Promise<ManyRoutes> {
  const { folder, backendPort, routes, mongodbUrl } = options;
  const program = join(import.meta.dirname, 'many-routes.ts');
  const tokensFile = join(folder, 'tokens.json');
  const args = [program, String(backendPort), String(routes), tokensFile];
  const child = spawn(process.execPath, mongodbUrl === undefined ? args : [...args, mongodbUrl], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { port } = JSON.parse(line.toString()) as { port: number };
  const tokens = JSON.parse(await readFile(tokensFile, 'utf8')) as string[];
  return { port, tokens, ...running(child) };
}

/** Starts JupyterHub's proxy from npm. */
export async function startConfigurableHttpProxy({ token, backendPort }: Work): Promise<Peer> {
  const npm = await findProgram('npm');
  if (npm === undefined) throw new Error('npm is not installed');
  const folder = await installedFromNpm(configurableHttpProxy, npm, [configurableHttpProxy]);
  const [port, apiPort] = [await freePort(), await freePort()];
  const program = join(folder, 'node_modules/configurable-http-proxy/bin/configurable-http-proxy');
  const host = '127.0.0.1';
  const args = [program, '--ip', host, '--port', `${port}`, '--api-ip', host, '--api-port', `${apiPort}`];
  const child = spawn(process.execPath, [...args, '--no-include-prefix', '--log-level', 'error'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await untilPortOpen(apiPort);
  const target = `http://${host}:${backendPort}`;
  const route = `http://${host}:${apiPort}/api/routes/${token}`;
  const { status } = await fetch(route, { method: 'POST', body: JSON.stringify({ target }) });
  if (status !== 201) throw new Error(`configurable-http-proxy returned ${status}`);
  return { port, ...running(child) };
}

async function startProgram(name: ProxyProgram, folder: string, settings: string, port: number): Promise<Peer> {
  const program = await proxyProgram(name);
  if ('missing' in program) throw new Error(program.missing);
  const path = join(folder, 'settings');
  await writeFile(path, settings);
  const args = name === 'nginx' ? ['-p', folder, '-c', path, '-e', 'stderr'] : ['-f', path, '-db'];
  const env = { ...process.env, ...program.env };
  const child = spawn(program.path, args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  await untilPortOpen(port);
  return { port, ...running(child) };
}

function running(child: ReturnType<typeof spawn>): Pick<Peer, 'pid'> & AsyncDisposable {
  return { pid: child.pid ?? 0, [Symbol.asyncDispose]: async () => void (await endProcess(child, 'SIGTERM')) };
}
