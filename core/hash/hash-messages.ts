/** What a thread that hashes is told, and answers. Buffers are handed over, not copied, and come back to be filled again. */
import type { HashAlgorithm } from './hash.ts';

export type HashRequest =
  | { readonly kind: 'begin'; readonly hash: number; readonly algorithm: HashAlgorithm }
  | { readonly kind: 'update'; readonly hash: number; readonly buffer: ArrayBuffer; readonly length: number }
  | { readonly kind: 'digest' | 'drop'; readonly hash: number };

export type HashAnswer =
  | { readonly kind: 'taken'; readonly hash: number; readonly buffer: ArrayBuffer }
  | { readonly kind: 'digest'; readonly hash: number; readonly hex: string };
