/** What a collection or a verification tells while it runs, as lines of JSON when it was asked for by command. */
import { z } from 'zod';

const count = z.int().nonnegative();
const tally = z.object({ blobs: count, bytes: count });

/** What went from one repository, or would go. */
const repositoryCollected = z.object({
  type: z.literal('repository'),
  repository: z.string(),
  manifests: count,
  tags: count,
  blobs: count,
  /** Of manifests and of blobs. Bytes of a blob stay for as long as another repository has it. */
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
  /** Bytes that no repository has any more: they go when the wait is over. In a dry run: that would go in the end. */
  condemned: tally,
  /** Bytes that are gone. */
  removed: tally,
  removal_wait_ms: count,
  duration_ms: count,
});

export const collectionEvent = z.discriminatedUnion('type', [repositoryCollected, collected]);

export type CollectionEvent = z.infer<typeof collectionEvent>;

/** The last event of a collection. */
export type CollectionSummary = z.infer<typeof collected>;

/** What can be wrong with what is stored. */
export const problemKinds = [
  'blob-damaged',
  'blob-unreadable',
  'manifest-damaged',
  'content-missing',
  'link-without-bytes',
  'link-size',
  'tag-without-manifest',
  'image-without-manifest',
] as const;

const problem = z.object({
  type: z.literal('problem'),
  kind: z.enum(problemKinds),
  /** Of the content that is damaged or missing. */
  digest: z.string(),
  repository: z.string().optional(),
  /** A sentence, for people. */
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

/** Something that is wrong. */
export type Problem = z.infer<typeof problem>;

/** The last event of a verification. */
export type VerificationSummary = z.infer<typeof verified>;
