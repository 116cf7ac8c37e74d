/**
 * What the registry keeps in the store. Bytes of blobs are behind the blobs port, shared by all repositories; everything
 * that says who may see what is here:
 *
 *   manifest      <repository>@<digest>    the bytes as they were pushed, and their media type
 *   tag           <repository>:<tag>       the digest it points to
 *   blob link     <repository>@<digest>    this repository has this blob: without a link the blob is invisible in it
 *   upload        <uuid>                   an upload session, bound to its repository
 *   tombstone     <digest>                 nobody links this blob: its bytes are going to be removed
 *   turn          collector                which process collects garbage
 */
import type { Collection } from '../../core/store/store.ts';
import type { DigestAlgorithm } from './digests.ts';

export interface StoredManifest {
  readonly id: string;
  readonly repository: string;
  readonly digest: string;
  /** The `Content-Type` it was pushed with, without parameters. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  readonly sizeBytes: number;
  /** `image`: a container can be made of it. */
  readonly kind: 'image' | 'index' | 'other';
  /** Digests of the manifests and blobs that it is made of, also of those that are stored elsewhere. */
  readonly references: readonly string[];
  /** The digest of the manifest that this one refers to. */
  readonly subject?: string;
  /** How it is listed among the referrers of its subject. */
  readonly referrer?: Referrer;
  /** In the store's time. */
  readonly pushedAt: Date;
  /** When it was last pushed, built on, or a client was told that it is here (`leases.ts`). In the store's time. */
  readonly usedAt: Date;
}

export interface Referrer {
  readonly artifactType?: string;
  /** An OCI descriptor as JSON: as a field, annotations with dots in their names could exceed the size of a document. */
  readonly descriptor: string;
}

export interface StoredTag {
  readonly id: string;
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
  /** In the store's time; grows with each push of the tag, so that it orders them. */
  readonly pushedAt: Date;
}

export interface BlobLink {
  readonly id: string;
  readonly repository: string;
  readonly digest: string;
  readonly sizeBytes: number;
  /** When it was last pushed, mounted, built on, or a client was told that it is here (`leases.ts`). In the store's time. */
  readonly usedAt: Date;
}

export interface UploadSession {
  readonly id: string;
  readonly repository: string;
  /** Who began it. */
  readonly subject: string;
  /** With which hash its bytes are summed while they arrive. */
  readonly algorithm: DigestAlgorithm;
  readonly startedAt: Date;
}

export interface Tombstone {
  /** The digest of a blob. */
  readonly id: string;
  /** `condemned`: whoever pushes the blob takes this away. `deleting`: whoever pushes it waits until this is gone. */
  readonly state: 'condemned' | 'deleting';
  /** Since when it is in this state, in the store's time. */
  readonly at: Date;
  /** Whose turn it was when the deletion began, or was taken up. */
  readonly holder?: string;
}

export interface CollectorTurn {
  readonly id: string;
  readonly holder: string;
  /** Until when its holder has it without renewing, in the store's time. */
  readonly until: Date;
  /** When a collection last came to its end. */
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

export const collectorTurns: Collection<CollectorTurn> = { name: 'registry-collector', indexes: {} };

/** How many manifests a scan reads at a time: each has up to 4 MiB. */
export const manifestBatchSize = 16;

/** Goes through the manifests, tags or blob links of one repository. */
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
