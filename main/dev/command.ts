/** `berth dev`: runs one service on this machine, and rebuilds its image when files change. */
import { readFile } from 'node:fs/promises';
import { BerthClient } from '../../client/index.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { newGatedServer } from '../../core/http/gated-server.ts';
import type { ServerHandlers } from '../../core/http/gated-server.ts';
import { listen } from '../../core/http/listener.ts';
import { ConfigError } from '../../core/config/settings.ts';
import { openLog } from '../../core/log/log.ts';
import { loadConfig } from '../config/config.ts';
import { openWholePlatform } from '../platform.ts';
import type { WholePlatform } from '../platform.ts';
import { listenProblem } from '../process/listen-problem.ts';
import { isReachedAsLocalhost, reachableHostPort } from '../process/listener.ts';
import { stopSignal } from '../process/program.ts';
import { Deployments } from './deployments.ts';
import { DockerFailure, engineOf, runDocker } from './docker.ts';
import type { Environment } from './docker.ts';
import { openFileWatch } from './file-watch.ts';
import { followBackends } from './followed-backends.ts';
import { frontHandlers } from './front.ts';
import { ImageSource } from './image-source.ts';
import { openImageWatch } from './image-watch.ts';
import { devAccount, devServiceName } from './own-paths.ts';
import { openOutput } from './output.ts';
import type { DevLog } from './output.ts';
import type { Report } from './report.ts';
import { stopBackend, stopBackends } from './stop-backends.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { readDevSettings, UsageError } from './settings.ts';
import type { DevSettings } from './settings.ts';

export interface DevCommand {
  readonly args: readonly string[];
  readonly environment: Environment;
  /** The current folder. */
  readonly folder: string;
}

/** Runs the development server until it is stopped. Returns the exit code. */
export async function devCommand({ args, environment, folder }: DevCommand): Promise<number> {
  let settings;
  try {
    settings = await readDevSettings(args, folder);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n"berth dev --help" lists the options\n`);
    return 2;
  }
  const stopped = stopSignal();
  await runDevServer(settings, environment, stopped);
  return 0;
}

/** Opens the listener first, because the temporary folder and the URLs of the platform contain its port. */
async function runDevServer(settings: DevSettings, given: Environment, stopped: Promise<unknown>): Promise<void> {
  await using opening = new AsyncDisposableStack();
  const ending = new AbortController();
  const { signal } = ending;
  const gate = newGatedServer();
  const address = { host: settings.host, port: settings.port, hostVariable: '--host', portVariable: '--port' };
  const listener = opening.use(
    await listen(gate.server, address).catch(async (error: unknown) => {
      throw await listenProblem(error, address);
    }),
  );
  const own = `http://${reachableHostPort(settings.host, listener.port)}`;
  const url = isReachedAsLocalhost(settings.host) ? `http://localhost:${listener.port}` : own;
  using output = openOutput(settings.output, given);
  const { report } = output;
  const engine = await engineOf({ environment: given, signal }).catch((error: unknown) => {
    if (error instanceof DockerFailure) return undefined;
    throw error;
  });
  const environment = { ...given, ...(engine !== undefined && { DOCKER_HOST: engine }) };
  const folder = opening.use(await temporaryFolder(environment, listener.port));
  const node = `dev-${listener.port}`;
  opening.defer(() => removeNetwork(node, environment));
  const platform = opening.use(await openDevPlatform({ environment, url, node, folder: folder.path, log: output.log }));
  const token = (await readFile(platform.account.tokenFile, 'utf8')).trim();
  const client = new BerthClient({ url: own, token });
  const images = new ImageSource({
    source: settings.source,
    repository: `${platform.urls.registry}/${devServiceName}`,
    account: devAccount,
    token,
    folder: folder.path,
    environment,
  });
  opening.defer(() => images.removeNames(new AbortController().signal));
  const deployments = newDeployments({ images, client, report });
  gate.open(
    frontHandlers({
      ...platform.handlers,
      url: own,
      token,
      host: settings.host,
      imageProblem: (request) => imageProblem(deployments, report, request),
      stopping: signal,
    }),
  );
  await client.createService(devServiceName, { signal });
  const following = new AbortController();
  opening.defer(() => following.abort());
  opening.use(await followBackends({ platform, client, report, signal: following.signal }));
  if (settings.watch) opening.use(await watchSource(settings.source, { deployments, report, environment }));
  report({ event: 'listening', url });
  const running = deployments.run(signal);
  await stopped;
  ending.abort(new Error('The development server stops'));
  await running;
  await stopBackends({ client, report, clock: systemClock, graceSeconds: platform.stopGraceSeconds });
  gate.close();
}

/** Triggers a deployment when a file of the build changes, or when the image's name refers to another image. */
async function watchSource(
  source: DevSettings['source'],
  {
    deployments,
    report,
    environment,
  }: { readonly deployments: Deployments; readonly report: Report; readonly environment: Environment },
): Promise<AsyncDisposable> {
  const onChange = (path: string) => deployments.change(path);
  const onProblem = (problem: string) => report({ event: 'warning', problem });
  return 'image' in source
    ? await openImageWatch({ image: source.image, environment, onChange, onProblem })
    : await openFileWatch({ build: source.build, onChange, onProblem });
}

interface DevPlatform extends WholePlatform {
  readonly stopGraceSeconds: number;
  readonly handlers: { readonly api: ServerHandlers; readonly proxy: ServerHandlers };
}

/** Opens all components of the platform in this process, with a temporary data folder and on free ports. */
async function openDevPlatform({
  environment,
  url,
  node,
  folder,
  log,
}: {
  readonly environment: Environment;
  readonly url: string;
  readonly node: string;
  readonly folder: string;
  readonly log: DevLog;
}): Promise<DevPlatform> {
  const config = loadConfig({
    BERTH_LOG_LEVEL: 'error',
    // Short, because the user waits for the new image.
    BERTH_STOP_GRACE_SECONDS: '5',
    ...environment,
    BERTH_DATA_FOLDER: folder,
    BERTH_FIRST_ACCOUNT: devAccount,
    // The same at each start, so that a start finds and removes the containers of a killed server.
    BERTH_NODE: node,
    BERTH_STORE: 'sqlite',
    BERTH_BLOBS: 'files',
    BERTH_QUEUE: 'process',
    BERTH_BUS: 'process',
    BERTH_LISTEN_HOST: '127.0.0.1',
    BERTH_API_PORT: '0',
    BERTH_REGISTRY_PORT: '0',
    BERTH_PROXY_PORT: '0',
    BERTH_OPERATIONS_PORT: '0',
    // The front passes requests to the proxy, so both run in one thread.
    BERTH_PROXY_THREADS: '0',
    // Empty means not set. These settings are for platforms with several machines or with a proxy in front.
    BERTH_ADVERTISED_HOST: '',
    BERTH_BEHIND_LOAD_BALANCER: '',
    BERTH_CLUSTER: '',
    BERTH_REGISTRY_PULL_HOST: '',
    BERTH_REGISTRY_URL: '',
    BERTH_SECRET_FILE: '',
    BERTH_API_URL: url,
    BERTH_PROXY_URL: url,
    BERTH_SESSION_DOMAIN: 'localhost',
    BERTH_URL_FORM: 'path',
  });
  const platform = await openWholePlatform({ config, log: openLog(config.logLevel, log) });
  const { api, proxy } = platform.handlers;
  if (!api || !proxy) throw new Error('A component is missing');
  const { stopGraceSeconds } = config;
  if (platform.worker.running) return { ...platform, handlers: { api, proxy }, stopGraceSeconds };
  await platform[Symbol.asyncDispose]();
  throw new ConfigError(`No Docker Engine: ${platform.worker.reason}`);
}

/** The worker keeps the network of its node for its next start, which may never happen here. */
async function removeNetwork(node: string, environment: Environment): Promise<void> {
  const { signal } = new AbortController();
  await runDocker(['network', 'rm', `berth-${node}`], { environment, signal }).catch(() => {});
}

function newDeployments({
  images,
  client,
  report,
}: {
  readonly images: ImageSource;
  readonly client: BerthClient;
  readonly report: Report;
}): Deployments {
  return new Deployments({
    clock: systemClock,
    report,
    build: async (signal) => await images.push(signal, (line) => report({ event: 'build-line', line })),
    serve: async (digest, signal) => {
      await client.setImage(devServiceName, digest, { signal });
      const running = await Array.fromAsync(client.runningBackends(devAccount, { signal }));
      const old = running.flatMap(({ id, image_digest: own }) => (own === digest ? [] : id));
      if (old.length > 0) report({ event: 'replacing', backends: old });
      await Promise.all(old.map((id) => stopBackend(client, id, signal)));
      await images.removeNames(signal, digest);
    },
  });
}

/** Waits for the build. Returns the reason if there is no image. */
async function imageProblem(
  deployments: Deployments,
  report: Report,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (deployments.isBuilding) report({ event: 'connect-waits' });
  await deployments.settled(signal);
  if (deployments.digest !== undefined) return undefined;
  return `The image cannot be built, see the output of berth dev: ${deployments.problem ?? ''}`;
}
