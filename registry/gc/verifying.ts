import type { Yielder } from '../../core/async/yielder.ts';
import type { CollectorDeps } from './collecting.ts';
import type { Turn } from './turn.ts';

/** One verification on its way, and what it has seen so far. */
export interface Verifying extends CollectorDeps {
  /** With a turn, what can be repaired is. */
  readonly turn: Turn | undefined;
  /** A link that was last used before this, and has no bytes, is none of a push that is under way. */
  readonly before: Date;
  readonly yielder: Yielder;
  readonly signal: AbortSignal;
  readonly seen: { blobs: number; bytes: number; manifests: number; tags: number };
}
