/**
 * What a thread that hashes is told, and answers. The memory of `parts` is handed over, not copied; the thread frees it. A
 * file's descriptor is good in all threads of a process; it stays open until the answer, as shared bytes stay as they are.
 */
import type { FilePart, HashAlgorithm } from './hash.ts';

export type HashRequest =
  | { readonly kind: 'begin'; readonly hash: number; readonly algorithm: HashAlgorithm }
  | { readonly kind: 'update'; readonly hash: number; readonly parts: readonly Uint8Array<ArrayBuffer>[] }
  | { readonly kind: 'update-from-file'; readonly hash: number; readonly fd: number; readonly part: FilePart }
  | { readonly kind: 'update-shared'; readonly hash: number; readonly bytes: Uint8Array<SharedArrayBuffer> }
  | { readonly kind: 'digest' | 'drop'; readonly hash: number };

export type HashAnswer =
  | { readonly kind: 'taken'; readonly hash: number }
  | { readonly kind: 'failed'; readonly hash: number; readonly message: string }
  | { readonly kind: 'digest'; readonly hash: number; readonly hex: string };
