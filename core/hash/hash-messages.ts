/**
 * What is sent to a thread that hashes, and back. Each `update`, `update-from-file` and `digest` has one answer, in order. A
 * file's descriptor is valid in all threads of a process.
 */
import type { FilePart, HashAlgorithm } from './hash.ts';

export type HashRequest =
  | { readonly kind: 'begin'; readonly hash: number; readonly algorithm: HashAlgorithm }
  | { readonly kind: 'update'; readonly hash: number; readonly bytes: Uint8Array }
  | { readonly kind: 'update-from-file'; readonly hash: number; readonly fd: number; readonly part: FilePart }
  | { readonly kind: 'digest' | 'drop'; readonly hash: number };

export interface HashAnswer {
  readonly hash: number;
  /** The digest, in hexadecimal; empty for an update. */
  readonly hex: string;
  readonly failure?: string;
}
