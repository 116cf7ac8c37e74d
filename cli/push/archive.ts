/** Pushes an image without Docker: uploads an archive, or packs the folder of an OCI layout during the upload. */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import type { Image } from '../../client/index.ts';
import { CliError } from '../errors.ts';
import { Progress } from '../output/progress.ts';
import type { Session } from '../session.ts';

interface ArchiveOptions {
  readonly archive: string;
  readonly tag?: string;
  readonly archiveImage?: string;
}

/** The bytes to upload, with their number if it is known. */
interface Source {
  readonly bytes: Readable;
  readonly sizeBytes: number | undefined;
}

/** Uploads an archive; the API checks every digest in it. */
export async function pushArchive(session: Session, service: string, options: ArchiveOptions): Promise<Image> {
  const progress = new Progress(session.io, `Uploading ${options.archive}`);
  const { bytes, sizeBytes } = await sourceOf(session, options.archive, progress);
  progress.start(sizeBytes);
  // An error while reading the file aborts the upload, with the reason.
  const failed = new AbortController();
  const counted = progress.counter();
  const reading = pipeline(bytes, counted, { signal: session.signal }).catch((error: unknown) => failed.abort(error));
  try {
    const client = await session.client();
    const archive = Readable.toWeb(counted) as ReadableStream<Uint8Array>;
    const { tag, archiveImage: image } = options;
    const signal = AbortSignal.any([session.signal, failed.signal]);
    const pushed = await client.uploadImage(service, { archive, tag, image, signal });
    progress.stop('Uploaded');
    return pushed;
  } catch (error) {
    progress.stop('The upload failed');
    throw error;
  } finally {
    bytes.destroy();
    await reading;
  }
}

async function sourceOf({ io }: Session, archive: string, progress: Progress): Promise<Source> {
  if (archive === '-') {
    if (io.stdin.isTTY) throw new CliError('NoArchive', 'Standard input is a terminal, not an archive');
    return { bytes: io.stdin, sizeBytes: undefined };
  }
  const path = resolve(io.cwd, archive);
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new CliError(
      'NoArchive',
      `Cannot read ${archive}: ${error.code === 'ENOENT' ? 'it does not exist' : error.message}`,
    );
  });
  if (!found.isDirectory()) return { bytes: createReadStream(path), sizeBytes: found.size };
  return await layoutSource(path, progress);
}

interface LayoutFile {
  readonly name: string;
  readonly path: string;
  readonly size: number;
}

/** Packs the folder of an OCI layout as a tar. */
async function layoutSource(folder: string, progress: Progress): Promise<Source> {
  const files = await layoutFiles(folder);
  const archive = pack();
  const writing = writeLayout(archive, files, progress);
  // The reader of `archive` reports the error.
  writing.catch((error: Error) => archive.destroy(error));
  const sizeBytes = files.reduce((sum, { size }) => sum + 512 + Math.ceil(size / 512) * 512, 1024);
  return { bytes: Readable.from(archive), sizeBytes };
}

/** The files of a layout, the index first, because it describes the blobs to the API. */
async function layoutFiles(folder: string): Promise<LayoutFile[]> {
  const blobs = await readdir(join(folder, 'blobs'), { recursive: true }).catch((): string[] => []);
  const names = ['oci-layout', 'index.json', ...blobs.toSorted().map((name) => join('blobs', name))];
  const files: LayoutFile[] = [];
  for (const name of names) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (!found) throw new CliError('NoArchive', `${folder} is not an OCI layout: it has no ${name}`);
    if (found.isFile()) files.push({ name, path, size: found.size });
  }
  return files;
}

async function writeLayout(
  archive: ReturnType<typeof pack>,
  files: readonly LayoutFile[],
  progress: Progress,
): Promise<void> {
  for (const { name, path, size } of files) {
    const digest = /^blobs\/(\w+)\/(\w{12})/.exec(name);
    if (digest) progress.step(`${digest[1]}:${digest[2]}`);
    await pipeline(createReadStream(path), archive.entry({ name, size, mode: 0o644, mtime: new Date(0) }));
  }
  archive.finalize();
}
