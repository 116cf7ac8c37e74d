/**
 * The registry's documents in the store. The bytes of blobs are behind the blobs port, shared by all repositories; these
 * documents decide what is visible where:
 *
 *   manifest      <repository>@<digest>    the bytes as they were pushed, and their media type
 *   tag           <repository>:<tag>       the digest it points to
 *   blob link     <repository>@<digest>    this repository has this blob: without a link the blob is invisible in it
 *   upload        <uuid>                   an upload session, bound to its repository
 *   tombstone     <digest>                 no repository links to this blob: its bytes will be removed
 *   lease         collector                which process collects garbage
 */
import type { HashAlgorithm } from '../../core/hash/hash.ts';
import type { Collection } from '../../core/store/store.ts';

export interface StoredManifest {
  readonly id: string;
  readonly repository: string;
  readonly digest: string;
  /** The `Content-Type` it was pushed with, without parameters. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  readonly sizeBytes: number;
  /** `image`: a container can run it. */
  readonly kind: 'image' | 'index' | 'other';
  /** Digests of the manifests and blobs that it consists of, including foreign layers. */
  readonly references: readonly string[];
  /** The digest of the manifest that this one refers to as its subject. */
  readonly subject?: string;
  /** Its entry in the list of its subject's referrers. */
  readonly referrer?: Referrer;
  /** In the store's time. */
  readonly pushedAt: Date;
  /** When it was last pushed, referred to, or reported as present (`leases.ts`). In the store's time. */
  readonly usedAt: Date;
}

export interface Referrer {
  readonly artifactType?: string;
  /** An OCI descriptor as JSON. As fields, annotations with dots in their names could exceed the size of a document. */
  readonly descriptor: string;
}

export interface StoredTag {
  readonly id: string;
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
  /** In the store's time; later for each push of the tag, so that it orders the pushes. */
  readonly pushedAt: Date;
}

export interface BlobLink {
  readonly id: string;
  readonly repository: string;
  readonly digest: string;
  readonly sizeBytes: number;
  /** When it was last pushed, mounted, referred to, or reported as present (`leases.ts`). In the store's time. */
  readonly usedAt: Date;
}

export interface UploadSession {
  readonly id: string;
  readonly repository: string;
  /** The account that began it. */
  readonly subject: string;
  /** The hash that is computed while its bytes arrive. */
  readonly algorithm: HashAlgorithm;
  readonly startedAt: Date;
}

export interface Tombstone {
  /** The digest of a blob. */
  readonly id: string;
  /** `marked`: a push of the blob deletes the tombstone. `deleting`: a push of the blob waits until the tombstone is deleted. */
  readonly state: 'marked' | 'deleting';
  /** The start of this state, in the store's time. */
  readonly at: Date;
  /** The holder of the leader lease that began the deletion or took it over. */
  readonly holder?: string;
}

export interface StoredLeaderLease {
  readonly id: string;
  readonly holder: string;
  /** When the lease ends unless its holder renews it, in the store's time. */
  readonly until: Date;
  /** When a garbage collection last completed. */
  readonly finishedAt?: Date;
}

export const manifests: Collection<StoredManifest, 'byRepository' | 'bySubject'> = {
  name: 'registry-manifests',
  indexes: { byRepository: ['repository', 'digest'], bySubject: ['repository', 'subject', 'digest'] },
};

export const tags: Collection<StoredTag, 'byRepository' | 'byDigest'> = {
  name: 'registry-tags',
  indexes: { byRepository: ['repository', 'tag'], byDigest: ['repository', 'digest', 'tag'] },
};

export const blobLinks: Collection<BlobLink, 'byRepository' | 'byDigest'> = {
  name: 'registry-blob-links',
  indexes: { byRepository: ['repository', 'digest'], byDigest: ['digest', 'repository'] },
};

export const uploadSessions: Collection<UploadSession, 'byStart' | 'byRepository'> = {
  name: 'registry-uploads',
  indexes: { byStart: ['startedAt'], byRepository: ['repository'] },
};

export const tombstones: Collection<Tombstone, 'byState'> = {
  name: 'registry-tombstones',
  indexes: { byState: ['state', 'at'] },
};

export const leaderLeases: Collection<StoredLeaderLease> = { name: 'registry-collector', indexes: {} };

/** How many manifests a scan reads at a time. Each has up to 4 MiB. */
export const manifestBatchSize = 16;

/** The query for the manifests, tags or blob links of one repository. */
export function ofRepository(repository: string) {
  return { index: 'byRepository', equals: { repository } } as const;
}

/** The ID of a manifest or a blob link. */
export function contentId(repository: string, digest: string): string {
  return `${repository}@${digest}`;
}

export function tagId(repository: string, tag: string): string {
  return `${repository}:${tag}`;
}
