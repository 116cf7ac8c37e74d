/**
 * Stores the entries of an archive as blobs. The purpose of an entry is often unknown until the end (the index may be the last
 * entry), so every file becomes a blob of the repository while it is read. When a client disconnects in the middle, these blobs
 * stay: a second upload need not store them again, and without one, garbage collection deletes them.
 */
import { randomUUID } from 'node:crypto';
import type { ByteSource } from '../../core/blobs/blobs.ts';
import { algorithmOf } from '../../core/hash/hash.ts';
import type { HashAlgorithm } from '../../core/hash/hash.ts';
import { digestPattern } from '../../contract/names.ts';
import type { ContentContext } from '../context.ts';
import { publishUpload } from '../content/blob-publish.ts';
import { renewBlob } from '../content/leases.ts';
import { discardUpload } from '../content/uploads.ts';
import { maxManifestBytes } from '../content/manifest.ts';
import { compressionOf, withHead } from './decompress.ts';
import type { Compression } from './decompress.ts';
import { ArchiveContents, documentNames } from './archive-contents.ts';
import type { ArchiveFile, DocumentName } from './archive-contents.ts';
import { badArchive } from './api-errors.ts';
import type { TarEntry } from './tar-entries.ts';

/** Files that `docker save` adds for engines from before 2016. */
const outdatedPattern = /^(?:repositories|[^/]+\/(?:VERSION|json))$/;

/** Reads an archive to its end. Throws errors of its source, and `BadRequest`. */
export async function storeEntries(
  context: ContentContext,
  repository: string,
  entries: AsyncIterable<TarEntry>,
): Promise<ArchiveContents> {
  const contents = new ArchiveContents();
  for await (const entry of entries) {
    if (entry.kind === 'link') contents.links.set(entry.name, entry.target);
    else if (isDocument(entry.name)) contents.documents.set(entry.name, await readDocument(entry));
    else if (!outdatedPattern.test(entry.name)) {
      contents.addFile(entry.name, await storeFile(context, repository, entry));
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
  return Buffer.concat(await Array.fromAsync(bytes));
}

async function storeFile(context: ContentContext, repository: string, entry: FileEntry): Promise<ArchiveFile> {
  const announced = announcedDigest(entry.name);
  const algorithm = announced === undefined ? 'sha256' : algorithmOf(announced);
  const sniffed: { compression?: Compression } = {};
  const bytes = sniff(entry.bytes, sniffed);
  const isStored = announced !== undefined && (await renewBlob(context, repository, announced)) === entry.sizeBytes;
  const file = { bytes, algorithm, name: entry.name, sizeBytes: entry.sizeBytes };
  const digest = isStored ? await verifyFile(context, file) : await storeBlob(context, repository, file);
  return { digest, sizeBytes: entry.sizeBytes, compression: sniffed.compression ?? 'none' };
}

/** The digest in the name of a file of an OCI layout. */
function announcedDigest(name: string): string | undefined {
  const [, algorithm, hex] = /^blobs\/(\w+)\/(\w+)$/.exec(name) ?? [];
  const digest = `${algorithm}:${hex}`;
  return digestPattern.test(digest) ? digest : undefined;
}

interface IncomingFile {
  readonly bytes: ByteSource;
  readonly algorithm: HashAlgorithm;
  readonly name: string;
  /** From the header of the tar entry. */
  readonly sizeBytes: number;
}

/** Verifies a file whose blob the repository already has. */
async function verifyFile({ hashing, signal }: ContentContext, file: IncomingFile): Promise<string> {
  const { bytes, algorithm, name } = file;
  using hash = hashing.begin(algorithm);
  for await (const chunks of bytes) {
    signal.throwIfAborted();
    for (const chunk of chunks) await hash.update(chunk);
  }
  return checkedName(name, `${algorithm}:${await hash.digest()}`);
}

async function storeBlob(context: ContentContext, repository: string, file: IncomingFile): Promise<string> {
  const { blobs, quota, signal } = context;
  const { algorithm } = file;
  const uploadId = randomUUID();
  const body = quota.countAndLimit(file.bytes, { repository, uploadId, sizeBytes: 0, announcedBytes: file.sizeBytes });
  await blobs.createUpload(uploadId);
  try {
    await blobs.appendUpload(uploadId, 0, body, { signal, algorithm });
    const { digest, sizeBytes } = await blobs.digestUpload(uploadId, algorithm, signal);
    checkedName(file.name, digest);
    await publishUpload(context, { repository, uploadId, digest, sizeBytes });
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
  for await (const chunk of withHead(source)) {
    sniffed.compression ??= compressionOf(chunk);
    yield [chunk];
  }
}
