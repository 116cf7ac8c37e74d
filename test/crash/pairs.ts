import type { Collection } from '../../core/store/store.ts';

/** A document whose two numbers always change together, so that a torn write is detected. */
export interface Pair {
  readonly id: string;
  readonly left: number;
  readonly right: number;
  readonly filling: string;
}

export const pairs: Collection<Pair, 'byLeft'> = { name: 'pairs', indexes: { byLeft: ['left'] } };
