/** Reads the entries of a tar one after another, within limits. Writes nothing to a file system. */
import { normalize } from 'node:path/posix';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Extract, Header } from 'tar-stream';
import { ApiError } from '../../model/api-error.ts';
import type { ArchiveLimits } from './limits.ts';
import { badArchive, tooLarge } from './api-errors.ts';

export type TarEntry =
  | {
      readonly kind: 'file';
      readonly name: string;
      readonly sizeBytes: number;
      readonly bytes: AsyncIterable<Uint8Array>;
    }
  | { readonly kind: 'link'; readonly name: string; readonly target: string };

/** Yields files and links in the order of the archive. The caller reads the bytes of a file before it requests the next entry. */
export async function* tarEntries(
  source: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
): AsyncGenerator<TarEntry, void, undefined> {
  // Loaded for the first archive: most processes read none.
  const { extract } = await import('tar-stream');
  const tar = extract();
  const reading: Reading = { faults: [], closed: closing(tar) };
  // The loop below reports errors.
  pipeline(Readable.from(recordingFaults(source, reading), { objectMode: true }), tar).catch(() => {});
  const seen = new Set<string>();
  let count = 0;
  try {
    for await (const each of tar) {
      count += 1;
      if (count > limits.maxEntries) throw tooLarge(`has more than ${limits.maxEntries} entries`);
      const entry = readEntry(each, reading, limits);
      if (entry) {
        // Two readers could read two different images.
        if (seen.has(entry.name)) throw badArchive(`has two entries named "${entry.name}"`);
        seen.add(entry.name);
        yield entry;
      }
      each.resume();
    }
  } catch (error) {
    throw error instanceof ApiError ? error : await failureOf(reading);
  } finally {
    tar.destroy();
  }
  if (count === 0) throw badArchive('has no entries');
}

/** An entry of tar-stream. */
type Source = AsyncIterable<unknown> & { readonly header: Header };

interface Reading {
  /** Errors of the source. */
  readonly faults: unknown[];
  /** Resolves when the tar has ended, with its error if it has failed. */
  readonly closed: Promise<unknown>;
}

async function closing(tar: Extract): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  let error: unknown;
  tar.on('error', (reason) => (error = reason)).once('close', () => resolve(error));
  return await promise;
}

/** Records errors of the source, which are otherwise indistinguishable from errors of the tar. */
async function* recordingFaults(
  source: AsyncIterable<Uint8Array>,
  { faults }: Pick<Reading, 'faults'>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      // Only errors of the source: an error thrown at the `yield` belongs to the reader.
      const { done, value } = await iterator.next().catch((error: unknown) => {
        faults.push(error);
        throw error;
      });
      if (done) return;
      yield value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** The content of an entry. tar-stream reports any error during reading as a destroyed stream. */
async function* content(entry: Source, reading: Reading): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of entry) yield chunk as Buffer;
  } catch {
    throw await failureOf(reading);
  }
}

/** The error of a tar that cannot be read further. */
async function failureOf({ faults, closed }: Reading): Promise<unknown> {
  const error = await closed;
  const [fault] = faults;
  return (
    fault ?? badArchive(`is not a complete tar (${error instanceof Error ? error.message : String(error)})`, error)
  );
}

function readEntry(entry: Source, reading: Reading, limits: ArchiveLimits): TarEntry | undefined {
  const { header } = entry;
  const sizeBytes = header.size ?? 0;
  if (Buffer.byteLength(header.name) > limits.maxPathBytes) throw badArchive('has an entry whose name is too long');
  const name = insideName(header.name);
  if (sizeBytes > limits.maxBytes) throw tooLarge(`has an entry of more than ${limits.maxBytes} bytes: "${name}"`);
  if (isSparse(header)) throw badArchive(`has a sparse file, "${name}"; make it without --sparse`);
  switch (header.type) {
    case 'directory':
      return undefined;
    case 'file':
    case 'contiguous-file':
      return { kind: 'file', name, sizeBytes, bytes: content(entry, reading) };
    case 'symlink':
      return { kind: 'link', name, target: linkTarget(`${name}/../`, header, limits) };
    case 'link':
      return { kind: 'link', name, target: linkTarget('', header, limits) };
    case 'block-device':
    case 'character-device':
    case 'fifo':
    default:
      throw badArchive(`has an entry that is neither file, folder nor link: "${name}"`);
  }
}

function linkTarget(base: string, { linkname, name }: Header, limits: ArchiveLimits): string {
  const target = linkname ?? '';
  if (target === '' || target.startsWith('/') || Buffer.byteLength(target) > limits.maxPathBytes) {
    throw badArchive(`has a link that points out of it: "${name}"`);
  }
  return insideName(`${base}${target}`);
}

/** Normalizes a name. Throws `BadRequest` if it leads out of the archive. */
function insideName(path: string): string {
  const name = normalize(path).replace(/^\.\//, '');
  if (name.startsWith('/') || name === '..' || name.startsWith('../') || name.includes('\0')) {
    throw badArchive('has an entry whose path leads out of it');
  }
  return name;
}

/** Whether GNU tar wrote a sparse file in a newer format; the older format has its own entry type. */
function isSparse({ pax }: Header): boolean {
  return pax !== null && pax !== undefined && Object.keys(pax).some((key) => key.startsWith('GNU.sparse.'));
}
