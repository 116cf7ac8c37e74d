/** The contents of an archive that was read: its files by name, and the documents that describe them. */
import { normalize } from 'node:path/posix';
import type { Compression } from './decompress.ts';
import { maxLinkHops } from './limits.ts';
import { badArchive } from './api-errors.ts';

/** A file of the archive, whose bytes are stored as a blob. */
export interface ArchiveFile {
  readonly digest: string;
  readonly sizeBytes: number;
  readonly compression: Compression;
}

/** Files that are kept in memory, because they describe all others. */
export const documentNames = ['index.json', 'manifest.json', 'oci-layout'] as const;

export type DocumentName = (typeof documentNames)[number];

export class ArchiveContents {
  readonly #files = new Map<string, ArchiveFile>();
  readonly #links = new Map<string, string>();
  readonly #documents = new Map<DocumentName, Uint8Array>();
  readonly #digests = new Map<string, ArchiveFile>();

  addFile(name: string, file: ArchiveFile): void {
    this.#files.set(name, file);
    this.#digests.set(file.digest, file);
  }

  addLink(name: string, target: string): void {
    this.#links.set(name, target);
  }

  addDocument(name: DocumentName, bytes: Uint8Array): void {
    this.#documents.set(name, bytes);
  }

  document(name: DocumentName): Uint8Array | undefined {
    return this.#documents.get(name);
  }

  byDigest(digest: string): ArchiveFile | undefined {
    return this.#digests.get(digest);
  }

  /** The file with a name, or the target of the link with that name. Throws `BadRequest` if there is none. */
  file(name: string): ArchiveFile {
    let at = normalize(name);
    for (let hops = 0; hops <= maxLinkHops; hops += 1) {
      const found = this.#files.get(at);
      if (found) return found;
      const target = this.#links.get(at);
      if (target === undefined) throw badArchive(`names "${name}" and does not have it`);
      at = target;
    }
    throw badArchive(`has links that lead nowhere: "${name}"`);
  }
}
