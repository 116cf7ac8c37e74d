/** Image archives for tests: of `docker save` and OCI layouts, valid and invalid ones. */
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import type { Header } from 'tar-stream';
import { sha256 } from './digests.ts';

/** An entry of a tar: a file with content, or the header fields of another type of entry. */
export type TestEntry = Partial<Omit<Header, 'name'>> & {
  readonly name: string;
  readonly content?: Uint8Array | string;
};

/** A blob with the digest and size of its descriptor. */
export interface TestBlob {
  readonly digest: string;
  readonly size: number;
  readonly bytes: Buffer;
}

const ociManifestType = 'application/vnd.oci.image.manifest.v1+json';
export const ociIndexType = 'application/vnd.oci.image.index.v1+json';
const ociConfigType = 'application/vnd.oci.image.config.v1+json';

const unowned = { mtime: new Date(0) };

/** A tar of these entries, in this order. */
export async function tarOf(entries: readonly TestEntry[]): Promise<Buffer> {
  const tar = pack();
  for (const { content = '', ...header } of entries) tar.entry({ ...unowned, ...header }, Buffer.from(content));
  tar.finalize();
  return await buffer(tar);
}

export function blobOf(content: Uint8Array | string | object): TestBlob {
  const isBytes = typeof content === 'string' || content instanceof Uint8Array;
  const bytes = Buffer.from(isBytes ? content : JSON.stringify(content));
  return { digest: sha256(bytes), size: bytes.length, bytes };
}

/** A config for uncompressed layers. */
export function configOf(layers: readonly TestBlob[], more: object = {}): TestBlob {
  const rootfs = { type: 'layers', diff_ids: layers.map(({ digest }) => digest) };
  return blobOf({ os: 'linux', architecture: 'amd64', config: {}, rootfs, ...more });
}

/** Config, layers and manifest of an image whose layers have these contents. */
export function imageOf(contents: readonly (Uint8Array | string)[], more: object = {}) {
  const layers = contents.map(blobOf);
  const config = configOf(layers, more);
  const manifest = blobOf({
    schemaVersion: 2,
    mediaType: ociManifestType,
    config: { mediaType: ociConfigType, digest: config.digest, size: config.size },
    layers: layers.map(({ digest, size }) => ({ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest, size })),
  });
  return { layers, config, manifest };
}

/** An index of manifests, or of indexes, with these architectures in the same order. */
export function indexOf(
  manifests: readonly TestBlob[],
  { mediaType = ociManifestType, architectures = ['amd64', 'arm64', 's390x', 'riscv64'] } = {},
): TestBlob {
  return blobOf({
    schemaVersion: 2,
    mediaType: ociIndexType,
    manifests: manifests.map(({ digest, size }, i) => ({
      mediaType,
      digest,
      size,
      platform: { os: 'linux', architecture: architectures[i] },
    })),
  });
}

/** Entries of an OCI layout: these blobs, and an index of these roots. */
export function layoutOf(
  blobs: readonly TestBlob[],
  roots: readonly { readonly blob: TestBlob; readonly mediaType?: string; readonly name?: string }[],
): TestEntry[] {
  const manifests = roots.map(({ blob: { digest, size }, mediaType = ociManifestType, name }) => ({
    mediaType,
    digest,
    size,
    ...(name !== undefined && { annotations: { 'org.opencontainers.image.ref.name': name } }),
  }));
  return [
    ...blobs.map(blobEntry),
    { name: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
    { name: 'index.json', content: JSON.stringify({ schemaVersion: 2, manifests }) },
  ];
}

export function blobEntry({ digest, bytes }: TestBlob): TestEntry {
  return { name: `blobs/${digest.replace(':', '/')}`, content: bytes };
}

/** Entries of an archive of `docker save` of old engines, for layers with these contents. */
export function savedOf(
  contents: readonly (Uint8Array | string)[],
  { tags = ['test/app:v1'], ...more }: { readonly tags?: readonly string[]; readonly extra?: object } = {},
): TestEntry[] {
  const layers = contents.map(blobOf);
  const config = configOf(layers, more.extra);
  const configName = `${config.digest.slice('sha256:'.length)}.json`;
  const names = layers.map((_layer, i) => `layer-${i}/layer.tar`);
  return [
    { name: configName, content: config.bytes },
    ...layers.flatMap(({ bytes, digest }, i): TestEntry[] => {
      const first = layers.findIndex((layer) => layer.digest === digest);
      return [
        { name: `layer-${i}/`, type: 'directory' },
        { name: `layer-${i}/VERSION`, content: '1.0' },
        { name: `layer-${i}/json`, content: '{}' },
        first === i
          ? { name: names[i] ?? '', content: bytes }
          : { name: names[i] ?? '', type: 'symlink', linkname: `../${names[first]}` },
      ];
    }),
    { name: 'manifest.json', content: JSON.stringify([{ Config: configName, RepoTags: tags, Layers: names }]) },
    { name: 'repositories', content: '{}' },
  ];
}
