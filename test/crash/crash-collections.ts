import type { Collection } from '../../core/store/store.ts';

/** A document whose fields always change together, so that half a write would be seen. */
export interface Pair {
  readonly id: string;
  readonly left: number;
  readonly right: number;
  readonly filling: string;
}

export const pairs: Collection<Pair, 'byLeft'> = { name: 'pairs', indexes: { byLeft: ['left'] } };
