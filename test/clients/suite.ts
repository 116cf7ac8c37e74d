/** The suite that every client passes. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { services } from '../../model/service.ts';
import { sharedServersVariable } from '../kit/servers/drivers.ts';
import { testMongo } from '../kit/servers/mongodb.ts';
import type { TestDatabase } from '../kit/servers/mongodb.ts';
import { outerAddress } from '../kit/machine/outer-address.ts';
import type { ClientKind, TestedClient } from './client.ts';
import { largeBytes, writeLayouts } from './layout.ts';
import type { LayoutTag, Layouts } from './layout.ts';
import { openRegistryServer } from './registry-server.ts';
import type { RegistryServer, RegistryServerOptions } from './registry-server.ts';

/** The registry, the client and the images of a test. */
export interface Fixture<Client extends TestedClient = TestedClient> {
  readonly server: RegistryServer;
  readonly client: Client;
  readonly layouts: Layouts;
  /** `<host>/acme/<name>`. */
  readonly at: (name: string) => string;
}

/** Declares a client's tests, which are skipped if it is not installed. `more` adds tests of this client's own features. */
export function describeClient<Client extends TestedClient>(
  kind: ClientKind<Client>,
  more: (fixture: () => Fixture<Client>) => void,
): void {
  describe.skipIf(!kind.installed)(`with ${kind.name}`, () => {
    withFixture(kind, { mongo: false }, (fixture) => {
      describePushAndPull(kind, fixture);
      describeRejections(kind, fixture);
      more(fixture);
    });
    const address = outerAddress();
    describe.skipIf(address === undefined || kind.hasFixedTrust)('through TLS', () => {
      describeTls(kind, address ?? '');
    });
  });
}

/** Like `describeClient`, with the essential tests only, on a registry that stores everything in MongoDB. */
export function describeClientOnMongo(kind: ClientKind): void {
  describe.skipIf(!kind.installed || !process.env[sharedServersVariable])(`with ${kind.name}, on MongoDB`, () => {
    withFixture(kind, { mongo: true }, (fixture) => describePushAndPull(kind, fixture));
  });
}

function withFixture<Client extends TestedClient>(
  kind: ClientKind<Client>,
  options: { readonly mongo: boolean },
  declare: (fixture: () => Fixture<Client>) => void,
): void {
  let fixture: (Fixture<Client> & AsyncDisposable) | undefined;
  beforeAll(async () => {
    fixture = await openFixture(kind, { ...options, images: ['small', 'large', 'index'] });
    await fixture.client.login({ user: 'acme', password: fixture.server.password });
  });
  afterAll(async () => await fixture?.[Symbol.asyncDispose]());
  declare(() => fixture!);
}

interface FixtureOptions extends RegistryServerOptions {
  readonly mongo?: boolean;
  readonly trust?: boolean;
  readonly images?: readonly LayoutTag[];
}

async function openFixture<Client extends TestedClient>(
  kind: ClientKind<Client>,
  { mongo, trust = true, images = ['small'], ...options }: FixtureOptions,
): Promise<Fixture<Client> & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  // podman uses this path as an image name, which must not have capital letters.
  const folder = join(tmpdir(), `berth-layout-${randomBytes(6).toString('hex')}`);
  await mkdir(folder);
  opening.defer(async () => await rm(folder, { recursive: true, force: true }));
  const layouts = await writeLayouts(folder, images);
  const database = mongo ? opening.use(await openDatabase()) : undefined;
  const server = opening.use(await openRegistryServer({ ...options, database }));
  const client = await kind.open({ place: server.place, layouts }, trust);
  opening.defer(async () => await client[Symbol.asyncDispose]?.());
  const owned = opening.move();
  const at = (name: string) => `${server.place.host}/acme/${name}`;
  return { server, client, layouts, at, [Symbol.asyncDispose]: async () => await owned.disposeAsync() };
}

async function openDatabase(): Promise<TestDatabase> {
  const mongo = await testMongo();
  if ('missing' in mongo) throw new Error(mongo.missing);
  return mongo.newDatabase();
}

function describePushAndPull(kind: ClientKind, fixture: () => Fixture): void {
  test('a pull returns what was pushed', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('one:v1'));
    await client.push('small', at('one:v2'));
    expect(await client.pull(at('one:v1'))).toBe(await server.digestOf('one', 'v1'));
    if (client.tags) expect(await client.tags(at('one'))).toEqual(['v1', 'v2']);
  });

  test('a push that was killed within a large layer succeeds when it is repeated', async () => {
    const { client, server, at } = fixture();
    const kill = new AbortController();
    const blocked = server.relay.blockAfter(largeBytes / 6);
    const push = client.push('large', at('large:v1'), { signal: kill.signal });
    await Promise.race([
      blocked,
      push.then(() => expect.unreachable('The push succeeded although the relay blocked it')),
    ]);
    kill.abort();
    await expect(push).rejects.toThrow(/abort/);
    server.relay.unblock();
    expect(await server.digestOf('large', 'v1')).toBeUndefined();
    await client.push('large', at('large:v1'));
    const digest = await server.digestOf('large', 'v1');
    expect(digest).toBeDefined();
    expect(await client.pull(at('large:v1'))).toBe(digest);
  });

  if (!kind.deletes) return;
  test('a deleted image no longer exists', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('gone:v1'));
    await client.remove?.(at('gone:v1'));
    expect(await server.digestOf('gone', 'v1')).toBeUndefined();
  });
}

function describeRejections(kind: ClientKind, fixture: () => Fixture): void {
  const as = async (password: string, act: () => Promise<unknown>) => {
    const { client, server } = fixture();
    try {
      await client.login({ user: 'acme', password });
      return await act();
    } finally {
      await client.login({ user: 'acme', password: server.password });
    }
  };

  test('a wrong password is rejected', async () => {
    const { client, at } = fixture();
    await expect(as('wrong', () => client.push('small', at('wrong:v1')))).rejects.toThrow(kind.words.wrongPassword);
  });

  test('without a login, only public images can be pulled, and nothing can be pushed', async () => {
    const { client, server, at } = fixture();
    await client.push('small', at('hidden:v1'));
    await client.push('small', at('open:v1'));
    await server.registry.store.update(services, 'acme/open', (service) => ({ ...service, public: true }));
    await client.logout();
    try {
      await expect(client.pull(at('hidden:v1'))).rejects.toThrow(kind.words.noLogin);
      expect(await client.pull(at('open:v1'))).toBe(await server.digestOf('open', 'v1'));
      await expect(client.push('small', at('open:v2'))).rejects.toThrow(kind.words.noLogin);
    } finally {
      await client.login({ user: 'acme', password: server.password });
    }
  });

  test('a push with a read-only token is denied', async () => {
    const { client, server, at } = fixture();
    const push = () => client.push('small', at('read:v1'));
    await expect(as(server.readPassword, push)).rejects.toThrow(kind.words.noRight);
    expect(await server.digestOf('read', 'v1')).toBeUndefined();
    await push();
    expect(await as(server.readPassword, () => client.pull(at('read:v1')))).toBe(await server.digestOf('read', 'v1'));
  });

  test('a missing image is reported as missing, not as denied', async () => {
    const { client, at } = fixture();
    await client.push('small', at('here:v1'));
    await expect(client.pull(at('here:v2'))).rejects.toThrow(kind.words.absent);
    await expect(client.pull(at('never:v1'))).rejects.toThrow(kind.words.absent);
  });
}

function describeTls(kind: ClientKind, address: string): void {
  test('push and pull work with a trusted authority', async () => {
    await using fixture = await openFixture(kind, { tlsAt: address });
    const { client, server, at } = fixture;
    await client.login({ user: 'acme', password: server.password });
    await client.push('small', at('one:v1'));
    expect(await client.pull(at('one:v1'))).toBe(await server.digestOf('one', 'v1'));
  });

  test('without a trusted authority, nothing is sent', async () => {
    await using fixture = await openFixture(kind, { tlsAt: address, trust: false });
    const { client, server, at } = fixture;
    const push = async () => {
      await client.login({ user: 'acme', password: server.password });
      await client.push('small', at('one:v1'));
    };
    await expect(push()).rejects.toThrow(kind.words.untrusted);
    expect(server.operations()).toEqual([]);
  });
}
