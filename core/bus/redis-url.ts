/**
 * The URL of a Redis:
 *
 *     redis://user:password@host:6379/0
 *     redis+unix:///run/redis.sock
 *     redis+sentinel://:password@sentinel-1:26379,sentinel-2:26379/name/0?sentinel_password=…
 *     redis+cluster://node-1:6379,node-2:6379
 *
 * `rediss` instead of `redis` uses TLS; `?ca=/path/ca.pem` replaces the trusted certificates of the system.
 */

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

interface RedisAccess {
  readonly username?: string;
  readonly password?: string;
  readonly database: number;
  readonly tls: boolean;
  /** A file of certificates (PEM). */
  readonly caFile?: string;
  /** The URL without its secrets, for logs. */
  readonly display: string;
}

export type RedisTarget = RedisAccess &
  (
    | { readonly kind: 'server'; readonly address: RedisAddress }
    | { readonly kind: 'socket'; readonly path: string }
    | {
        readonly kind: 'sentinel';
        readonly sentinels: readonly RedisAddress[];
        readonly master: string;
        readonly sentinelPassword?: string;
      }
    | { readonly kind: 'cluster'; readonly nodes: readonly RedisAddress[] }
  );

/** A Redis URL is invalid. The message says why, and contains no secrets. */
export class RedisUrlError extends Error {
  override readonly name = 'RedisUrlError';
}

const defaultPort = 6379;
const defaultSentinelPort = 26_379;

/** Servers have 16 databases by default; this is more than any server has. */
const maxDatabase = 9_999;

const shape =
  /^(?<scheme>[a-z]+)(?:\+(?<kind>[a-z]+))?:\/\/(?:(?<secrets>[^/?]*)@)?(?<hosts>[^/?]*)(?<path>\/[^?]*)?(?:\?(?<query>.*))?$/;

/** Reads a Redis URL. Throws `RedisUrlError`. */
export function parseRedisUrl(url: string): RedisTarget {
  const parts = shape.exec(url)?.groups;
  if (!parts) throw new RedisUrlError('A Redis URL looks like redis://host:6379');
  const { scheme, kind = 'server', secrets, hosts = '', path = '', query = '' } = parts;
  if (scheme !== 'redis' && scheme !== 'rediss') {
    throw new RedisUrlError(`A Redis URL begins with redis: or rediss:, not ${scheme}:`);
  }
  const display = `${scheme}${kind === 'server' ? '' : `+${kind}`}://${hosts}${path}`;
  const options = readQuery(query, kind);
  const access = {
    ...readSecrets(secrets),
    tls: scheme === 'rediss',
    ...(options.ca !== undefined && { caFile: options.ca }),
    display,
  };
  if (options.ca !== undefined && !access.tls) throw new RedisUrlError('?ca= needs TLS: begin the URL with rediss');
  if (options.ca === '') throw new RedisUrlError('Name the file of certificates: ?ca=/path/ca.pem');
  switch (kind) {
    case 'server':
      return { kind, ...access, address: oneAddress(hosts), database: readDatabase(path.slice(1)) };
    case 'unix':
      return { kind: 'socket', ...access, ...readSocket(hosts, path, access.tls), database: readDatabase(options.db) };
    case 'sentinel': {
      const [master = '', database, ...more] = path.slice(1).split('/');
      if (master === '' || more.length > 0)
        throw new RedisUrlError('Name the master: redis+sentinel://host:26379/name');
      const password = options.sentinel_password;
      return {
        kind,
        ...access,
        sentinels: addresses(hosts, defaultSentinelPort),
        master: decode(master),
        ...(password !== undefined && { sentinelPassword: password }),
        database: readDatabase(database),
      };
    }
    case 'cluster':
      if (path !== '' && path !== '/') throw new RedisUrlError('A Redis Cluster has no databases: leave the path out');
      return { kind, ...access, nodes: addresses(hosts, defaultPort), database: 0 };
    default:
      throw new RedisUrlError(`Use redis+unix, redis+sentinel or redis+cluster, not redis+${kind}`);
  }
}

function readSecrets(secrets: string | undefined): { username?: string; password?: string } {
  if (secrets === undefined) return {};
  const colon = secrets.indexOf(':');
  if (colon === -1)
    throw new RedisUrlError('A user needs a password: redis://user:password@host, or redis://:password@host');
  const [username, password] = [decode(secrets.slice(0, colon)), decode(secrets.slice(colon + 1))];
  return { ...(username !== '' && { username }), ...(password !== '' && { password }) };
}

const queryNames: Readonly<Record<string, readonly string[]>> = {
  unix: ['ca', 'db'],
  sentinel: ['ca', 'sentinel_password'],
};

function readQuery(query: string, kind: string): { ca?: string; db?: string; sentinel_password?: string } {
  const options = Object.fromEntries(new URLSearchParams(query));
  const known = queryNames[kind] ?? ['ca'];
  for (const name of Object.keys(options)) {
    if (!known.includes(name))
      throw new RedisUrlError(`A Redis URL of this kind has no option "${name}": use ${known.join(', ')}`);
  }
  return options;
}

function readSocket(hosts: string, path: string, tls: boolean): { path: string } {
  if (tls) throw new RedisUrlError('A Unix socket does not support TLS: begin the URL with redis+unix');
  if (hosts !== '' || path.length < 2)
    throw new RedisUrlError('Name the socket by its absolute path: redis+unix:///run/redis.sock');
  return { path: decode(path) };
}

function readDatabase(text: string | undefined): number {
  if (text === undefined || text === '') return 0;
  if (/^\d{1,4}$/.test(text)) return Number(text);
  throw new RedisUrlError(`A Redis database is a number from 0 to ${maxDatabase}`);
}

function oneAddress(hosts: string): RedisAddress {
  const [address, ...more] = addresses(hosts, defaultPort);
  if (!address || more.length > 0) {
    throw new RedisUrlError('Name one host, or use redis+sentinel or redis+cluster for several');
  }
  return address;
}

function addresses(hosts: string, portIfNone: number): RedisAddress[] {
  return hosts.split(',').map((text, index) => {
    const parts = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<name>[^:[\]\s]+))(?::(?<port>\d{1,5}))?$/.exec(text)?.groups;
    const host = parts?.['v6'] ?? parts?.['name'];
    const port = Number(parts?.['port'] ?? portIfNone);
    if (host === undefined || port < 1 || port > 65_535) {
      // Not quoted: it may contain a part of a wrongly encoded password.
      throw new RedisUrlError(
        `Host ${index + 1} is not an address: use host, host:port or [IPv6]:port, and in a password write / as %2F and ? as %3F`,
      );
    }
    return { host, port };
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RedisUrlError('A part of the Redis URL is not correctly percent-encoded: write % as %25');
  }
}
