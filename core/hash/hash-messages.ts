/** What a thread that hashes is told, and answers. The memory of `parts` is handed over, not copied; the thread frees it. */
import type { HashAlgorithm } from './hash.ts';

export type HashRequest =
  | { readonly kind: 'begin'; readonly hash: number; readonly algorithm: HashAlgorithm }
  | { readonly kind: 'update'; readonly hash: number; readonly parts: readonly Uint8Array<ArrayBuffer>[] }
  | { readonly kind: 'digest' | 'drop'; readonly hash: number };

export type HashAnswer =
  | { readonly kind: 'taken'; readonly hash: number }
  | { readonly kind: 'digest'; readonly hash: number; readonly hex: string };
