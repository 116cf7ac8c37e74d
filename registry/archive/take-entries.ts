/**
 * From the entries of an archive to blobs. What an entry is for is often known only at the end (the index may be the last
 * one), so every file becomes a blob of the repository as it goes by, under the digest that its bytes have. Whoever leaves
 * in the middle has pushed some blobs, which a second try need not store again and garbage collection takes away.
 */
import { randomUUID } from 'node:crypto';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import { digestPattern } from '../../contract/names.ts';
import { publishChecked } from '../http/blob-push.ts';
import { discardUpload } from '../http/upload-session.ts';
import type { RegistryContext } from '../context.ts';
import { renewLink } from '../content/leases.ts';
import { algorithmOf } from '../content/digests.ts';
import type { DigestAlgorithm } from '../content/digests.ts';
import { maxManifestBytes } from '../content/manifest.ts';
import { compressionOf } from './compression.ts';
import type { Compression } from './compression.ts';
import { ArchiveContents, documentNames } from './contents.ts';
import type { ArchiveFile, DocumentName } from './contents.ts';
import { badArchive } from './api-errors.ts';
import type { TarEntry } from './tar-entries.ts';

/** What `docker save` adds for engines of before 2016. */
const outdatedPattern = /^(?:repositories|[^/]+\/(?:VERSION|json))$/;

/** Reads an archive to its end. Throws what its source fails with, and `BadRequest`. */
export async function takeEntries(
  context: RegistryContext,
  repository: string,
  entries: AsyncIterable<TarEntry>,
): Promise<ArchiveContents> {
  const contents = new ArchiveContents();
  for await (const entry of entries) {
    if (entry.kind === 'link') contents.addLink(entry.name, entry.target);
    else if (isDocument(entry.name)) contents.addDocument(entry.name, await readDocument(entry));
    else if (!outdatedPattern.test(entry.name)) {
      contents.addFile(entry.name, await takeFile(context, repository, entry));
    }
  }
  return contents;
}

type FileEntry = Extract<TarEntry, { kind: 'file' }>;

function isDocument(name: string): name is DocumentName {
  return (documentNames as readonly string[]).includes(name);
}

async function readDocument({ name, sizeBytes, bytes }: FileEntry): Promise<Uint8Array> {
  if (sizeBytes > maxManifestBytes) throw badArchive(`has a ${name} of more than ${maxManifestBytes} bytes`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function takeFile(context: RegistryContext, repository: string, entry: FileEntry): Promise<ArchiveFile> {
  const announced = announcedDigest(entry.name);
  const algorithm = announced === undefined ? 'sha256' : algorithmOf(announced);
  const sniffed: { compression?: Compression } = {};
  const bytes = sniff(entry.bytes, sniffed);
  const isHere = announced !== undefined && (await leasedBlobSize(context, repository, announced)) === entry.sizeBytes;
  const file = { bytes, algorithm, name: entry.name, sizeBytes: entry.sizeBytes };
  const digest = isHere ? await check(context, file) : await store(context, repository, file);
  return { digest, sizeBytes: entry.sizeBytes, compression: sniffed.compression ?? 'none' };
}

/** The size of a blob that the repository has, and has for some time yet. */
async function leasedBlobSize(
  context: RegistryContext,
  repository: string,
  digest: string,
): Promise<number | undefined> {
  const blob = (await renewLink(context, repository, digest)) && (await context.blobs.stat(digest));
  return blob?.sizeBytes;
}

/** The digest that a file of an OCI layout has by its name. */
function announcedDigest(name: string): string | undefined {
  const [, algorithm, hex] = /^blobs\/(\w+)\/(\w+)$/.exec(name) ?? [];
  const digest = `${algorithm}:${hex}`;
  return digestPattern.test(digest) ? digest : undefined;
}

interface IncomingFile {
  readonly bytes: ByteSource;
  readonly algorithm: DigestAlgorithm;
  readonly name: string;
  /** As the tar announces it. */
  readonly sizeBytes: number;
}

/** Reads a file whose blob the repository has. */
async function check({ hashing, signal }: RegistryContext, file: IncomingFile): Promise<string> {
  const { bytes, algorithm, name } = file;
  using hash = hashing.begin(algorithm);
  for await (const chunks of bytes) {
    signal.throwIfAborted();
    for (const chunk of chunks) await hash.update(chunk);
  }
  return checkedName(name, `${algorithm}:${await hash.digest()}`);
}

async function store(context: RegistryContext, repository: string, file: IncomingFile): Promise<string> {
  const { blobs, quota, signal } = context;
  const { algorithm } = file;
  const uploadId = randomUUID();
  const body = quota.meter(file.bytes, { repository, uploadId, sizeBytes: 0, announcedBytes: file.sizeBytes });
  await blobs.createUpload(uploadId);
  try {
    await blobs.appendUpload(uploadId, 0, body, { signal, algorithm });
    const { digest, sizeBytes } = await blobs.digestUpload(uploadId, algorithm, signal);
    checkedName(file.name, digest);
    await publishChecked(context, { repository, uploadId, digest, sizeBytes });
    return digest;
  } catch (error) {
    await discardUpload(context, { repository, uploadId });
    throw error;
  }
}

function checkedName(name: string, digest: string): string {
  const announced = announcedDigest(name);
  if (announced === undefined || announced === digest) return digest;
  throw badArchive(`is damaged: the content of "${name}" has ${digest}`);
}

async function* sniff(
  source: AsyncIterable<Uint8Array>,
  sniffed: { compression?: Compression },
): AsyncGenerator<readonly Uint8Array[], void> {
  for await (const chunk of source) {
    // Entries come in chunks of kilobytes; one that begins with less than four bytes is taken for uncompressed.
    sniffed.compression ??= compressionOf(chunk);
    yield [chunk];
  }
}
