/**
 * Images with the names in docker-compose.yml and the Dockerfile, for machines that cannot pull them. They contain this
 * machine's programs: the real Redis, Caddy and Node, and the protocol server as MongoDB.
 */
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findProgram, runCommand } from '../../setup/command.ts';
import type { Image, LayerEntry } from '../../setup/image.ts';
import { containedMongo } from './mongodb-runtime.ts';
import { caddyProgram } from './caddy-program.ts';
import { folder, libraryPath, librariesOf, program, smallSystem } from './programs.ts';

const path = 'PATH=/usr/local/bin:/usr/bin:/bin';

/** The stand-ins with these names, or why one cannot be built here. */
export async function standIns(names: {
  readonly node: string;
  readonly mongodb: string;
  readonly redis: string;
  readonly caddy: string;
}): Promise<readonly Image[] | { readonly missing: string }> {
  const [redis, caddy, mongodb] = [await findProgram('redis-server'), await caddyProgram(), await containedMongo()];
  if (redis === undefined) return { missing: 'redis-server is not installed' };
  if (typeof caddy !== 'string') return caddy;
  if ('missing' in mongodb) return mongodb;
  if ((await findProgram('npm')) === undefined) return { missing: 'npm is not on the PATH' };
  return [
    await nodeImage(names.node),
    await mongoImage(names.mongodb, mongodb),
    await redisImage(names.redis, redis),
    await caddyImage(names.caddy, caddy),
  ];
}

/** Node with npm, which uses this machine's package registry. */
async function nodeImage(tag: string): Promise<Image> {
  const npm = dirname(dirname(await realpath((await findProgram('npm')) ?? 'npm')));
  const registry = (await runCommand('npm', ['config', 'get', 'registry'])).trim();
  const certificates = process.env['NODE_EXTRA_CA_CERTS'];
  const base: LayerEntry[] = [
    ...(await smallSystem(['node:x:1000:1000:node:/tmp:/bin/sh'])),
    ...(await program(process.execPath, '/usr/local/bin/node')),
    ...(await folder(npm, '/usr/local/lib/node_modules/npm')),
    { path: '/usr/local/bin/npm', link: '../lib/node_modules/npm/bin/npm-cli.js' },
    ...(certificates ? [{ path: '/etc/ssl/extra.pem', file: certificates }] : []),
  ];
  const env = [path, libraryPath(base), 'HOME=/tmp', `npm_config_registry=${registry}`];
  if (certificates) env.push('NODE_EXTRA_CA_CERTS=/etc/ssl/extra.pem');
  return { tag, layers: [base], config: { Cmd: ['node'], Env: env } };
}

/** The protocol server with the programs of the real image: an entrypoint that starts it, and `mongosh` for the health check. */
async function mongoImage(tag: string, { runtime, classes }: { runtime: string; classes: string }): Promise<Image> {
  const java = await folder(runtime, '/java');
  const libraries = await librariesOf(
    java.flatMap((entry) => ('file' in entry && isBinary(entry.path) ? entry.file : [])),
  );
  const server = `#!/bin/sh
exec /java/bin/java -Xmx384m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp '/server:/server/lib/*' Contained 27017
`;
  const layers: LayerEntry[][] = [
    [
      ...(await smallSystem(['mongodb:x:999:999:mongodb:/data/db:/bin/sh'])),
      ...libraries.filter((entry) => !entry.path.startsWith(runtime)),
      ...java,
    ],
    [
      ...(await folder(classes, '/server')),
      { path: '/usr/local/bin/docker-entrypoint.sh', text: server, mode: 0o755 },
      { path: '/usr/local/bin/mongosh', text: '#!/bin/sh\nexec nc 127.0.0.1 27017 </dev/null\n', mode: 0o755 },
      { path: '/data/db', folder: true },
      { path: '/data/configdb', folder: true },
    ],
  ];
  return { tag, layers, config: { Cmd: ['mongod'], Env: [path, libraryPath(libraries)] } };
}

function isBinary(file: string): boolean {
  return file.endsWith('.so') || file.startsWith('/java/bin/');
}

async function redisImage(tag: string, server: string): Promise<Image> {
  const client = join(dirname(server), 'redis-cli');
  const entries: LayerEntry[] = [
    ...(await smallSystem(['redis:x:999:999:redis:/data:/bin/sh'])),
    ...(await program(server, '/usr/local/bin/redis-server')),
    ...(await program(client, '/usr/local/bin/redis-cli')),
    { path: '/data', folder: true },
  ];
  return { tag, layers: [entries], config: { Cmd: ['redis-server'], Env: [path, libraryPath(entries)] } };
}

async function caddyImage(tag: string, caddy: string): Promise<Image> {
  const entries: LayerEntry[] = [
    ...(await smallSystem([])),
    ...(await program(caddy, '/usr/bin/caddy')),
    { path: '/data', folder: true },
    { path: '/config', folder: true },
  ];
  const env = [path, libraryPath(entries), 'XDG_CONFIG_HOME=/config', 'XDG_DATA_HOME=/data'];
  return { tag, layers: [entries], config: { Cmd: ['caddy', 'run'], Env: env } };
}
