/** The events of a garbage collection or a verification, which commands print as lines of JSON. */
import { z } from 'zod';

const count = z.int().nonnegative();
const blobTotals = z.object({ blobs: count, bytes: count });

/** A number of blobs, and the sum of their bytes. */
export type BlobTotals = z.infer<typeof blobTotals>;

/** What was deleted from one repository, or would be in a dry run. */
const repositoryCollected = z.object({
  type: z.literal('repository'),
  repository: z.string(),
  manifests: count,
  tags: count,
  blobs: count,
  /** Of manifests and of blobs. The bytes of a blob stay while another repository links to it. */
  bytes: count,
});

const collected = z.object({
  type: z.literal('collected'),
  dry_run: z.boolean(),
  repositories: count,
  manifests: count,
  tags: count,
  /** Links from a repository to a blob. */
  links: count,
  uploads: count,
  /** Blobs that no repository links to any more: removed when the wait has ended. In a dry run, all that would be removed. */
  marked: blobTotals,
  removed: blobTotals,
  removal_wait_ms: count,
  duration_ms: count,
});

export const gcEvent = z.discriminatedUnion('type', [repositoryCollected, collected]);

export type GcEvent = z.infer<typeof gcEvent>;

/** The last event of a garbage collection. */
export type GcSummary = z.infer<typeof collected>;

/** The kinds of problems that a verification finds: see docs/garbage-collection.md. */
const problemKinds = [
  'blob-damaged',
  'blob-unreadable',
  'manifest-damaged',
  'manifest-unreadable',
  'content-missing',
  'link-without-bytes',
  'link-size',
  'tag-without-manifest',
  'image-without-manifest',
] as const;

const problem = z.object({
  type: z.literal('problem'),
  kind: z.enum(problemKinds),
  /** The content that is damaged or missing. */
  digest: z.string(),
  repository: z.string().optional(),
  /** For people. */
  message: z.string(),
  repaired: z.boolean(),
});

const verified = z.object({
  type: z.literal('verified'),
  repair: z.boolean(),
  blobs: count,
  bytes: count,
  repositories: count,
  manifests: count,
  tags: count,
  problems: count,
  repaired: count,
  duration_ms: count,
});

export const verificationEvent = z.discriminatedUnion('type', [problem, verified]);

export type VerificationEvent = z.infer<typeof verificationEvent>;

export type Problem = z.infer<typeof problem>;

/** The last event of a verification. */
export type VerificationSummary = z.infer<typeof verified>;
