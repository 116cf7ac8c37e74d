/** The contents of an archive that was read: its files by name, and the documents that describe them. */
import { normalize } from 'node:path/posix';
import { badArchive } from './api-errors.ts';
import type { Compression } from './decompress.ts';
import { maxLinkHops } from './limits.ts';

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
  readonly documents = new Map<DocumentName, Uint8Array>();
  /** The target of each link. */
  readonly links = new Map<string, string>();
  readonly #files = new Map<string, ArchiveFile>();
  readonly #byDigest = new Map<string, ArchiveFile>();

  addFile(name: string, file: ArchiveFile): void {
    this.#files.set(name, file);
    this.#byDigest.set(file.digest, file);
  }

  byDigest(digest: string): ArchiveFile | undefined {
    return this.#byDigest.get(digest);
  }

  /** The file with a name, or the target of the link with that name. Throws `BadRequest` if there is none. */
  file(name: string): ArchiveFile {
    let at = normalize(name);
    for (let hops = 0; hops <= maxLinkHops; hops += 1) {
      const found = this.#files.get(at);
      if (found) return found;
      const target = this.links.get(at);
      if (target === undefined) throw badArchive(`refers to "${name}", which it does not contain`);
      at = target;
    }
    throw badArchive(`has a chain of more than ${maxLinkHops} links: "${name}"`);
  }
}
