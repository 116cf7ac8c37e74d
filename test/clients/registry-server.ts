/** What clients meet: a registry behind a front, logins with and without the right to push, and images to push. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestDatabase } from '../kit/servers/mongodb.ts';
import { openTestRegistry } from '../kit/registry/registry.ts';
import type { TestRegistry } from '../kit/registry/registry.ts';
import { makeCertificate } from './certificate.ts';
import { openFront } from './front.ts';
import type { Front } from './front.ts';
import type { Place } from './client.ts';

export interface RegistryServer extends AsyncDisposable {
  readonly registry: TestRegistry;
  readonly front: Front;
  readonly place: Place;
  /** The password of the account `acme`, which may do everything in it. */
  readonly password: string;
  /** One with which `acme` can pull only. */
  readonly readPassword: string;
  /** The digest that the registry has for `<service>:<tag>` of `acme`, or `undefined`. */
  digestOf(service: string, tag: string): Promise<string | undefined>;
  /** The operations that clients have asked for since this was called the last time. */
  operations(): readonly Operation[];
}

/** A request, as the registry's log tells of it. */
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
  /** The address to speak TLS at; without one, plain HTTP on the loopback. */
  readonly tlsAt?: string;
  readonly database?: TestDatabase | undefined;
}

export async function openRegistryServer({ tlsAt, database }: RegistryServerOptions = {}): Promise<RegistryServer> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'berth-clients-'));
  opening.defer(async () => await rm(folder, { recursive: true, force: true }));
  const certificate = tlsAt === undefined ? undefined : await makeCertificate(folder, tlsAt);
  const address = tlsAt ?? '127.0.0.1';
  const front = opening.use(await openFront(address, certificate));
  const host = `${address}:${front.port}`;
  const publicUrl = certificate && { publicUrl: `https://${host}` };
  const registry = opening.use(await openTestRegistry({ ...publicUrl, ...(database && { mongo: database }) }));
  front.leadTo(registry.port);
  const readPassword = await registry.addToken('acme', ['read']);
  const owned = opening.move();
  return {
    registry,
    front,
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

/** How the registry answered each request for an operation. */
export function codesOf(operations: readonly Operation[], name: string): (number | 'gone')[] {
  return operations.filter(({ operation }) => operation === name).map(({ code }) => code);
}
