import { afterAll, beforeAll, expect, test } from 'vitest';
import { findImage, images } from '../../model/image.ts';
import { services } from '../../model/service.ts';
import { openTestRegistry, pushBlob, pushImage, putManifest, sha256 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry } from '../../test/kit/registry/registry.ts';

let registry: TestRegistry;
beforeAll(async () => {
  registry = await openTestRegistry();
});
afterAll(async () => await registry[Symbol.asyncDispose]());

const imageType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';
const architecture = process.arch === 'x64' ? 'amd64' : process.arch;

const find = async (service: string, reference = 'v1') => await findImage(registry.store, `acme/${service}`, reference);

test('a pushed tag becomes an image, and the first push creates the service', async () => {
  const labels = { hash: 'abc', branch: 'main', message: 'Fix <b>', repository: 'git@example.com:a/b' };
  const { digest } = await pushImage(registry, { repository: 'acme/first', reference: 'v1' }, { labels });
  const image = await find('first');
  expect(image).toMatchObject({ tag: 'v1', digest, platform: 'linux/amd64', gitCommit: labels });
  const config = JSON.stringify({ os: 'linux', architecture: 'amd64', config: { Labels: labels } });
  expect(image?.sizeBytes).toBe(config.length + 'a layer'.length);
  expect(await registry.store.get(services, 'acme/first')).toMatchObject({
    account: 'acme',
    name: 'first',
    lastImageDigest: digest,
    lastImageUploadTime: image?.uploadTime,
    environments: [{ name: 'default', imageTag: 'latest', cluster: 'main' }],
  });
  expect(await find('first', digest)).toMatchObject({ tag: 'v1' });
});

test('moving a tag adds an image and keeps the history; moving it back makes the old image the last one', async () => {
  const target = { repository: 'acme/moved', reference: 'v1' };
  const one = await pushImage(registry, target, { labels: { hash: 'one' } });
  const two = await pushImage(registry, target, { labels: { hash: 'two' } });
  expect((await find('moved'))?.digest).toBe(two.digest);
  expect((await find('moved', one.digest))?.gitCommit).toEqual({ hash: 'one' });
  await pushImage(registry, target, { labels: { hash: 'one' } });
  expect((await find('moved'))?.digest).toBe(one.digest);
  expect((await registry.store.get(services, 'acme/moved'))?.lastImageDigest).toBe(one.digest);
  const all = await registry.store.find(images, { index: 'byTime', equals: { repository: 'acme/moved' } });
  expect(all.map(({ digest }) => digest)).toEqual([two.digest, one.digest]);
});

test('after concurrent pushes of a tag, the tag and the last image agree', async () => {
  const hashes = ['a', 'b', 'c', 'd', 'e', 'f'];
  await Promise.all(
    hashes.map((hash) => pushImage(registry, { repository: 'acme/raced', reference: 'v1' }, { labels: { hash } })),
  );
  const tagged = await registry.as('/v2/acme/raced/manifests/v1', { method: 'HEAD' });
  expect((await find('raced'))?.digest).toBe(tagged.headers['docker-content-digest']);
  expect((await registry.store.get(services, 'acme/raced'))?.lastImageDigest).toBe((await find('raced'))?.digest);
});

test('reads the git commit from the labels of push tools, else of the OCI, else from annotations, with limited lengths', async () => {
  const oci = { 'org.opencontainers.image.revision': 'r', 'org.opencontainers.image.source': 's' };
  const push = async (reference: string, labels: object, annotations: object = {}) => {
    await pushImage(registry, { repository: 'acme/git', reference }, { labels, extra: { annotations } });
    return (await find('git', reference))?.gitCommit;
  };
  expect(await push('oci', oci)).toEqual({ hash: 'r', repository: 's' });
  expect(await push('both', { ...oci, hash: 'h' })).toEqual({ hash: 'h', repository: 's' });
  expect(await push('annotated', {}, { ...oci, 'org.opencontainers.image.ref.name': 'main' })).toEqual({
    hash: 'r',
    repository: 's',
    branch: 'main',
  });
  expect(await push('none', { hash: '', branch: 7, message: null })).toBeUndefined();
  const long = await push('long', { message: `${'x'.repeat(4095)}😀`, hash: 'y'.repeat(1_000_000) });
  expect(long?.message).toHaveLength(4096);
  expect(long?.message?.isWellFormed()).toBe(true);
  expect(long?.hash).toHaveLength(128);
});

test('selects the image for the platform of this node in an index, not its attestation', async () => {
  const repository = 'acme/indexed';
  const child = async (arch: string, hash: string) => {
    const about = { labels: { hash }, architecture: arch };
    const { digest } = await pushImage(registry, { repository, reference: `child-${arch}` }, about);
    const size = (await registry.as(`/v2/${repository}/manifests/${digest}`)).body.length;
    return { mediaType: imageType, digest, size, platform: { os: 'linux', architecture: arch } };
  };
  const unknown = { ...(await child('unknown', 'attested')), platform: { os: 'unknown', architecture: 'unknown' } };
  const index = (manifests: object[]) => ({ schemaVersion: 2, mediaType: indexType, manifests });
  const mine = await child(architecture, 'mine');
  const foreign = await child('riscv64', 'foreign');
  const pushed = await putManifest(registry, { repository, reference: 'v1' }, index([unknown, foreign, mine]));
  expect(await find('indexed')).toMatchObject({
    digest: pushed.digest,
    platform: `linux/${architecture}`,
    gitCommit: { hash: 'mine' },
  });
  await putManifest(registry, { repository, reference: 'other' }, index([unknown, foreign]));
  expect(await find('indexed', 'other')).toMatchObject({ platform: 'linux/riscv64', gitCommit: { hash: 'foreign' } });
});

/** Pushes a config, and returns the manifest of an image without layers that has it. */
async function imageWithConfig(
  repository: string,
  text: string,
  mediaType = 'application/vnd.oci.image.config.v1+json',
) {
  const config = { mediaType, ...(await pushBlob(registry, repository, text)) };
  return { schemaVersion: 2, mediaType: imageType, config, layers: [] };
}

test('a signature or a chart is stored, and does not become an image', async () => {
  const repository = 'acme/charts';
  const chart = await imageWithConfig(repository, '{}', 'application/vnd.cncf.helm.config.v1+json');
  expect((await putManifest(registry, { repository, reference: 'v1' }, chart)).status).toBe(201);
  expect(await find('charts')).toBeUndefined();
  expect((await registry.store.get(services, repository))?.lastImageDigest).toBeUndefined();
});

test('an image with an invalid config has no properties', async () => {
  const repository = 'acme/nonsense';
  const manifest = await imageWithConfig(repository, '[not json');
  expect((await putManifest(registry, { repository, reference: 'v1' }, manifest)).status).toBe(201);
  expect(await find('nonsense')).toMatchObject({ digest: sha256(JSON.stringify(manifest)), sizeBytes: 9 });
});

test('an image with a platform that is not well-formed is stored', async () => {
  const repository = 'acme/half';
  const manifest = await imageWithConfig(repository, String.raw`{"os":"\ud800","architecture":"amd64"}`);
  expect((await putManifest(registry, { repository, reference: 'v1' }, manifest)).status).toBe(201);
  expect(await find('half')).toMatchObject({ platform: '\ufffd/amd64' });
});

test('deleting a tag or a manifest deletes its images', async () => {
  const repository = 'acme/gone';
  const { digest } = await pushImage(registry, { repository, reference: 'v1' });
  await pushImage(registry, { repository, reference: 'v2' });
  await registry.as(`/v2/${repository}/manifests/v1`, { method: 'DELETE' });
  expect([(await find('gone'))?.tag, (await find('gone', 'v2'))?.tag]).toEqual([undefined, 'v2']);
  await registry.as(`/v2/${repository}/manifests/${digest}`, { method: 'DELETE' });
  expect(await find('gone', 'v2')).toBeUndefined();
});
