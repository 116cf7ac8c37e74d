/** A registry for clients, behind a relay, with a login that may push and a login that may only pull. */
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import type { TestDatabase } from '../kit/servers/mongodb.ts';
import { openTestRegistry } from '../kit/registry/registry.ts';
import type { TestRegistry } from '../kit/registry/registry.ts';
import { certificateFor } from './certificate.ts';
import { openRelay } from './relay.ts';
import type { Relay } from './relay.ts';
import type { Place } from './client.ts';

export interface RegistryServer extends AsyncDisposable {
  readonly registry: TestRegistry;
  readonly relay: Relay;
  readonly place: Place;
  /** The password of the account `acme`, with all rights on its own repositories. */
  readonly password: string;
  /** A password with which `acme` can only pull. */
  readonly readPassword: string;
  /** The digest that the registry has for `<service>:<tag>` of `acme`, or `undefined`. */
  digestOf(service: string, tag: string): Promise<string | undefined>;
  /** The requests since the last call. */
  operations(): readonly Operation[];
}

/** A request, as logged by the registry. */
export interface Operation {
  readonly operation: string;
  readonly repository?: string;
  readonly tag?: string;
  readonly digest?: string;
  readonly code: number | 'gone';
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface RegistryServerOptions {
  /** The address for TLS; without it, plain HTTP on loopback. */
  readonly tlsAt?: string;
  readonly database?: TestDatabase | undefined;
}

/** Opens the registry and its relay. */
export async function openRegistryServer({ tlsAt, database }: RegistryServerOptions = {}): Promise<RegistryServer> {
  await using opening = new AsyncDisposableStack();
  const { path: folder } = opening.use(await temporaryFolder());
  const certificate = tlsAt === undefined ? undefined : await certificateFor(folder, tlsAt);
  const address = tlsAt ?? '127.0.0.1';
  const relay = opening.use(await openRelay(address, certificate));
  const host = `${address}:${relay.port}`;
  const publicUrl = certificate && { publicUrl: `https://${host}` };
  const registry = opening.use(await openTestRegistry({ ...publicUrl, ...(database && { mongo: database }) }));
  relay.forwardTo(registry.port);
  const readPassword = await registry.addToken('acme', ['read']);
  const owned = opening.move();
  return {
    registry,
    relay,
    place: { folder, host, security: certificate ?? 'plain' },
    password: registry.token,
    readPassword,
    digestOf: async (service, tag) => {
      const answer = await registry.as(`/v2/acme/${service}/manifests/${tag}`, { method: 'HEAD' });
      return answer.headers['docker-content-digest']?.toString();
    },
    operations: () => registry.logLines.splice(0).map((line) => JSON.parse(line) as Operation),
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  };
}

/** The status code of each request with this operation. */
export function codesOf(operations: readonly Operation[], name: string): (number | 'gone')[] {
  return operations.filter(({ operation }) => operation === name).map(({ code }) => code);
}
