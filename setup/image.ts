/**
 * Packs container images from scratch, as archives that `docker load` reads:
 *
 *   <hex>.tar       a layer, named by the digest of its content
 *   <hex>.json      the image's configuration, named by its digest, too; it lists the digests of the layers
 *   manifest.json   the configuration, tag and layers of the image
 *
 * The same input gives the same bytes, so an image that is packed twice is pushed only once.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path/posix';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import type { Pack } from 'tar-stream';

/** An entry of a layer, with its absolute path in the container. Missing parent folders are added. */
export type LayerEntry = { readonly path: string; readonly mode?: number } & (
  | { readonly file: string }
  | { readonly text: string }
  | { readonly link: string }
  | { readonly folder: true }
);

/** The `config` object of the OCI image configuration, which says how to run the image. */
export interface RunConfig {
  readonly Cmd: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly Env?: readonly string[];
  readonly ExposedPorts?: Readonly<Record<string, Record<string, never>>>;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly User?: string;
  readonly WorkingDir?: string;
}

export interface Image {
  /** `<registry>/<account>/<service>:<tag>`. */
  readonly tag: string;
  /** From the lowest to the highest. Files that rarely change belong into a low layer, because only new layers are pushed. */
  readonly layers: readonly (readonly LayerEntry[])[];
  readonly config: RunConfig;
}

interface Layer {
  readonly entries: readonly LayerEntry[];
  readonly hex: string;
  readonly sizeBytes: number;
}

/** The owner and time of all entries: constants, so that archives are deterministic. */
const unowned = { uid: 0, gid: 0, mtime: new Date(0) } as const;

/** Maps the architecture names of Node.js to those of the OCI image specification. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** The image as an archive for `docker load`. Files are read twice, because the archive has their digests before their content. */
export function packImage(image: Image): Readable {
  const archive = pack();
  void fill(archive, image).then(
    () => archive.finalize(),
    (error: unknown) => archive.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  return Readable.from(archive);
}

/**
 * The ID of an image after it is loaded, which shows whether an engine has the image already. An engine that stores its images in
 * containerd uses other IDs, so there the image is loaded again.
 */
export async function imageId(image: Image): Promise<string> {
  return `sha256:${(await describe(image)).configHex}`;
}

async function fill(archive: Pack, image: Image): Promise<void> {
  const { layers, config, configHex } = await describe(image);
  for (const layer of layers) {
    await addStream(archive, { ...unowned, name: `${layer.hex}.tar`, size: layer.sizeBytes }, packLayer(layer.entries));
  }
  const configName = `${configHex}.json`;
  const manifest = [{ Config: configName, RepoTags: [image.tag], Layers: layers.map(({ hex }) => `${hex}.tar`) }];
  archive.entry({ ...unowned, name: configName }, config);
  archive.entry({ ...unowned, name: 'manifest.json' }, JSON.stringify(manifest));
}

async function describe(image: Image) {
  const layers = [];
  for (const entries of image.layers) layers.push(await digestLayer(entries));
  const config = JSON.stringify(imageConfig(image.config, layers));
  return { layers, config, configHex: createHash('sha256').update(config).digest('hex') };
}

function imageConfig(config: RunConfig, layers: readonly Layer[]) {
  const created = unowned.mtime.toISOString();
  return {
    architecture: architectures[process.arch] ?? process.arch,
    os: 'linux',
    created,
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ hex }) => `sha256:${hex}`) },
    history: layers.map(() => ({ created, created_by: 'berth' })),
  };
}

async function digestLayer(entries: readonly LayerEntry[]): Promise<Layer> {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  for await (const chunk of packLayer(entries) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    sizeBytes += chunk.length;
  }
  return { entries, hex: hash.digest('hex'), sizeBytes };
}

function packLayer(entries: readonly LayerEntry[]): Readable {
  const layer = pack();
  void addEntries(layer, withFolders(entries)).then(
    () => layer.finalize(),
    (error: unknown) => layer.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  return Readable.from(layer);
}

async function addEntries(layer: Pack, entries: readonly LayerEntry[]): Promise<void> {
  for (const entry of entries) {
    const name = entry.path.slice(1);
    if ('folder' in entry) {
      layer.entry({ ...unowned, name: `${name}/`, type: 'directory', mode: entry.mode ?? 0o755 });
    } else if ('link' in entry) {
      layer.entry({ ...unowned, name, type: 'symlink', linkname: entry.link, mode: 0o777 });
    } else if ('text' in entry) {
      layer.entry({ ...unowned, name, mode: entry.mode ?? 0o644 }, entry.text);
    } else {
      const { size, mode } = await stat(entry.file);
      const header = { ...unowned, name, size, mode: entry.mode ?? (mode & 0o111 ? 0o755 : 0o644) };
      await addStream(layer, header, createReadStream(entry.file));
    }
  }
}

async function addStream(archive: Pack, header: Parameters<Pack['entry']>[0], content: Readable): Promise<void> {
  await pipeline(content, archive.entry(header));
}

/** The entries in the order of their paths, so that each folder precedes its content. */
function withFolders(entries: readonly LayerEntry[]): LayerEntry[] {
  const byPath = new Map<string, LayerEntry>();
  for (const { path } of entries) {
    for (let folder = dirname(path); folder !== '/'; folder = dirname(folder)) {
      byPath.set(folder, { path: folder, folder: true });
    }
  }
  for (const entry of entries) byPath.set(entry.path, entry);
  return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
