/** The environments of a platform's processes: one process, or several on shared drivers. */
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestEngine } from '../engines/docker-engine.ts';
import { possibleOpenFiles } from '../machine/open-files.ts';
import { freePorts } from '../machine/free-port.ts';
import { shiftedClock } from '../machine/shifted-clock.ts';
import type { TestDrivers } from '../servers/drivers.ts';
import type { TestPlatform } from './platform.ts';

type RoleName = 'registry' | 'api' | 'worker' | 'proxy';

/** The name of a process: its roles, as for `--roles`. A second process of a role has a 2 at the end. */
export type ProcessName = 'registry,api,worker,proxy' | 'registry,api' | RoleName | `${RoleName}2`;

/**
 * The processes on the shared drivers, unless a test sets others. A process takes almost a second of CPU time to start. A test
 * that needs one process per role names them, or starts twins.
 */
const usual: readonly ProcessName[] = ['registry,api', 'worker', 'proxy'];

export interface PlatformOptions {
  /** Without an engine, the platform's worker runs no backends. */
  readonly engine?: TestEngine | undefined;
  /** Default `embedded`. */
  readonly drivers?: TestDrivers;
  /** On the shared drivers: starts a second process of every role, with a worker on this engine. */
  readonly twinsOn?: TestEngine | undefined;
  /** On the shared drivers: starts only these processes. Default: `usual`, or with twins one of every role. */
  readonly only?: readonly ProcessName[];
  /** Starts nodes of this platform, which is on the shared drivers, too: its store, API and registry are theirs. */
  readonly joins?: TestPlatform | undefined;
  /** Processes that `startPlatform` does not start; `restart` does. */
  readonly later?: readonly ProcessName[];
  /** Other settings, as `BERTH_...` variables. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The seconds by which the clocks of processes are shifted. See `shiftedClock`. */
  readonly clocks?: Readonly<Partial<Record<ProcessName, number>>>;
}

/** Where a platform keeps its data, and the name of its node. */
export interface Place {
  readonly dataFolder: string;
  readonly node: string;
}

export type Environment = Readonly<Record<string, string>>;

/** The environment of each process, without the settings of the developer's own Berth. */
export async function environmentsOf(
  options: PlatformOptions,
  place: Place,
): Promise<ReadonlyMap<ProcessName, Environment>> {
  const { drivers = 'embedded' } = options;
  const common = { BERTH_DATA_FOLDER: place.dataFolder, ...(await commonEnvironment(options, place)) };
  if (drivers === 'embedded') return new Map([['registry,api,worker,proxy', common]]);
  const secretFile = join(place.dataFolder, 'shared-secret');
  await writeFile(secretFile, randomBytes(32).toString('base64url'), { mode: 0o600 });
  const shared = {
    ...common,
    BERTH_SECRET_FILE: secretFile,
    BERTH_STORE: 'mongodb',
    BERTH_BLOBS: 'gridfs',
    BERTH_QUEUE: 'bullmq',
    BERTH_BUS: 'redis',
    BERTH_MONGODB_URL: drivers.mongodbUrl,
    BERTH_REDIS_URL: drivers.redisUrl,
    BERTH_MONGODB_DATABASE: place.node,
    BERTH_REDIS_PREFIX: place.node,
    ...(options.joins && sharedVariables(options.joins.environment)),
  };
  const of: NewEnvironment = (name, more = {}) => [
    name,
    { ...shared, BERTH_DATA_FOLDER: join(place.dataFolder, name), ...more },
  ];
  const separate = [of('registry'), of('worker'), of('proxy'), of('api'), ...(await twins(options, place, of))];
  const joined: NamedEnvironment = of('registry,api');
  const wanted = options.only ?? (options.twinsOn ? separate.map(([name]) => name) : usual);
  const kept = [joined, ...separate].filter(([name]) => wanted.includes(name));
  return new Map(await Promise.all(kept.map(async (each) => await withClock(each, options.clocks?.[each[0]]))));
}

/** The variables that all processes of a platform have in common. */
function sharedVariables(environment: Environment): Environment {
  const drivers = ['BERTH_SECRET_FILE', 'BERTH_MONGODB_DATABASE', 'BERTH_REDIS_PREFIX'];
  const ports = ['BERTH_API_PORT', 'BERTH_REGISTRY_PORT', 'BERTH_PROXY_PORT'];
  return Object.fromEntries([...drivers, ...ports].map((name) => [name, environment[name] ?? '']));
}

async function withClock([name, environment]: NamedEnvironment, bySeconds = 0): Promise<NamedEnvironment> {
  return [name, { ...environment, ...(bySeconds !== 0 && (await shiftedClock(bySeconds))) }];
}

type NamedEnvironment = [ProcessName, Environment];

type NewEnvironment = (name: ProcessName, more?: Environment) => NamedEnvironment;

/** A second process of every role, on its own ports. */
async function twins({ twinsOn }: PlatformOptions, place: Place, of: NewEnvironment): Promise<NamedEnvironment[]> {
  const [api, registry, proxy] = (await freePorts(3)).map(String) as [string, string, string];
  return [
    of('registry2', { BERTH_REGISTRY_PORT: registry }),
    of('worker2', {
      BERTH_NODE: twinOf(place.node),
      ...(twinsOn && { DOCKER_HOST: twinsOn.host }),
      // Like a node on another machine, which proxies reach through its gateway.
      BERTH_ADVERTISED_HOST: '127.0.0.1',
      BERTH_GATEWAY_HOST: '127.0.0.1',
      BERTH_GATEWAY_PORT: '0',
    }),
    of('proxy2', { BERTH_PROXY_PORT: proxy }),
    of('api2', { BERTH_API_PORT: api }),
  ];
}

/** The name of the second node. */
export function twinOf(node: string): string {
  return `${node}-2`;
}

/** The settings of all processes. Ports are fixed, because processes need each other's ports, and keep them over restarts. */
async function commonEnvironment({ engine, settings }: PlatformOptions, place: Place): Promise<Environment> {
  const [api, registry, proxy] = (await freePorts(3)).map(String) as [string, string, string];
  return {
    PATH: process.env['PATH'] ?? '',
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
    MALLOC_ARENA_MAX: '2',
    DOCKER_HOST: engine?.host ?? `unix://${place.dataFolder}/no-engine.sock`,
    BERTH_NODE: place.node,
    BERTH_API_PORT: api,
    BERTH_REGISTRY_PORT: registry,
    BERTH_PROXY_PORT: proxy,
    BERTH_OPERATIONS_PORT: '0',
    // Test platforms start and stop concurrently; the tests of the firewall turn it on.
    BERTH_FIREWALL: 'off',
    BERTH_OPEN_FILES_LIMIT: String(possibleOpenFiles()),
    // No limit, because test machines may have little memory.
    BERTH_NODE_MEMORY_BYTES: '0',
    ...settings,
  };
}
