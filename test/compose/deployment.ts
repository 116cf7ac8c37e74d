/** Starts docker-compose.yml on a modern engine, with stand-ins for the images that it would pull. */
import { randomBytes, randomInt } from 'node:crypto';
import { appendFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { newPair } from '../../core/tls/testing/new-pair.ts';
import { runCommand, tryCommand } from '../../setup/command.ts';
import { packImage } from '../../setup/image.ts';
import { startEngine } from '../kit/engines/docker-engine.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { freePorts } from '../kit/machine/free-port.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { Compose, composeProgram } from './compose.ts';
import { standIns } from './stand-ins.ts';

const makeSecrets = fileURLToPath(new URL('../../deploy/make-secrets.sh', import.meta.url));

const service = z.object({ image: z.string() });

/** The part of docker-compose.yml that names its images. */
const images = z.object({
  services: z.object({
    mongodb: service,
    redis: service,
    caddy: service,
    registry: z.object({ build: z.object({ args: z.object({ NODE_IMAGE: z.string() }) }) }),
  }),
});

/** A domain that no resolver knows. */
export const sessionDomain = 'sessions.berth.test';

export interface Deployment extends AsyncDisposable {
  readonly engine: TestEngine;
  readonly compose: Compose;
  readonly apiUrl: string;
  readonly registry: string;
  readonly token: string;
  /** The port on which Caddy listens for TLS. */
  readonly httpsPort: number;
  /** The certificate for the hosts of sessions. */
  readonly certificate: string;
}

/** The containers are healthy after ten seconds, or later on a busy machine. */
const upTimeoutSeconds = 90;

/** Starts all containers, and waits until they are healthy. */
export async function deploy(): Promise<Deployment> {
  await using opening = new AsyncDisposableStack();
  const { path: folder } = opening.use(await temporaryFolder());
  const engine = await openEngine(opening);
  const settings = await settingsFor(engine, folder);
  const compose = new Compose((await composeProgram()) ?? 'docker-compose', settings, ['test/compose/override.yml']);
  await loadStandIns(engine, compose);
  opening.defer(async () => await tearDown(engine, compose, settings['BERTH_NODE']));
  await compose.run('build');
  await compose.up('--wait-timeout', `${upTimeoutSeconds}`);
  const token = (await compose.run('exec', '--no-TTY', 'api', 'cat', '/data/token')).trim();
  const owned = opening.move();
  return {
    engine,
    compose,
    apiUrl: `http://127.0.0.1:${settings['BERTH_API_PORT']}`,
    registry: `127.0.0.1:${settings['BERTH_REGISTRY_PORT']}`,
    token,
    httpsPort: Number(settings['HTTPS_PORT']),
    certificate: await readFile(join(settings['CERTIFICATES_FOLDER'], 'sessions.crt'), 'utf8'),
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  };
}

/** Returns the modern engine of this test run, or starts one. */
async function openEngine(opening: AsyncDisposableStack): Promise<TestEngine> {
  return testEngines().find(({ kind }) => kind === 'modern') ?? opening.use(await startEngine('modern'));
}

/** Removes the containers of the platform and of its backends. The images remain until the engine is removed. */
async function tearDown(engine: TestEngine, compose: Compose, node: string): Promise<void> {
  const at = { env: { DOCKER_HOST: engine.host } };
  await compose.run('down', '--volumes', '--timeout', '5');
  const { stdout } = await tryCommand('docker', ['ps', '--all', '--quiet', '--filter', `label=berth.node=${node}`], at);
  const backends = stdout.split('\n').filter(Boolean);
  if (backends.length > 0) await tryCommand('docker', ['rm', '--force', '--volumes', ...backends], at);
  await tryCommand('docker', ['network', 'rm', `berth-${node}`], at);
}

/** Loads the stand-ins under the names in docker-compose.yml and the Dockerfile, so that the engine pulls no image. */
async function loadStandIns(engine: TestEngine, compose: Compose): Promise<void> {
  const { mongodb, redis, caddy, registry } = images.parse(await compose.config()).services;
  const standInImages = await standIns({
    node: registry.build.args.NODE_IMAGE,
    mongodb: mongodb.image,
    redis: redis.image,
    caddy: caddy.image,
  });
  if ('missing' in standInImages) throw new Error(standInImages.missing);
  for (const image of standInImages) {
    await runCommand('docker', ['load', '--quiet'], { env: { DOCKER_HOST: engine.host }, input: packImage(image) });
  }
}

async function settingsFor(engine: TestEngine, folder: string) {
  const socket = engine.host.slice('unix://'.length);
  const secrets = join(folder, 'secrets');
  await runCommand('sh', [makeSecrets, secrets]);
  // The protocol server supports neither users nor replica sets.
  await appendFile(join(secrets, 'berth.env'), 'BERTH_MONGODB_URL=mongodb://mongodb:27017/berth\n');
  const [api, registry, proxy, gateway, operations, http, https] = await freePorts(7);
  const name = `compose-${randomBytes(4).toString('hex')}`;
  return {
    COMPOSE_PROJECT_NAME: name,
    DOCKER_HOST: engine.host,
    DOCKER_CONFIG: folder,
    DOCKER_SOCKET: socket,
    DOCKER_GID: `${(await stat(socket)).gid}`,
    SECRETS_FOLDER: secrets,
    // An address that no other Redis, MongoDB or run of this test on this machine uses.
    STORES_ADDRESS: `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`,
    DOMAIN: '',
    SESSION_DOMAIN: sessionDomain,
    CERTIFICATES_FOLDER: await makeCertificates(join(folder, 'certificates')),
    // This machine does not resolve the hosts of sessions.
    BERTH_URL_FORM: 'path',
    BERTH_NODE: name,
    BERTH_API_PORT: `${api}`,
    BERTH_REGISTRY_PORT: `${registry}`,
    BERTH_PROXY_PORT: `${proxy}`,
    BERTH_GATEWAY_PORT: `${gateway}`,
    BERTH_OPERATIONS_PORT: `${operations}`,
    HTTP_PORT: `${http}`,
    HTTPS_PORT: `${https}`,
  };
}

/** Creates a certificate for the hosts of sessions, like one that an authority issues to an operator. */
async function makeCertificates(folder: string): Promise<string> {
  await mkdir(folder, { mode: 0o755 });
  const { certificate, key } = await newPair([`*.${sessionDomain}`]);
  await writeFile(join(folder, 'sessions.crt'), certificate);
  await writeFile(join(folder, 'sessions.key'), key, { mode: 0o600 });
  return folder;
}
