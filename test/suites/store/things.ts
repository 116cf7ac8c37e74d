/** Shared by the tests of store drivers: their data, a collection, and values in the order of every index. */
import { expect } from 'vitest';
import type { TestAPI } from 'vitest';
import type { AnyCollection } from '../../../core/store/query-plan.ts';
import { StoreError } from '../../../core/store/store.ts';
import type { Collection, IndexValue, Store } from '../../../core/store/store.ts';
import { keys } from '../../../model/key.ts';

/** Data that outlives the stores opened on it. */
export interface StoreData extends AsyncDisposable {
  open(collections: readonly AnyCollection[]): Promise<Store>;
}

export interface Thing {
  readonly id: string;
  readonly group?: IndexValue;
  readonly rank?: IndexValue;
  /** The field of the partial index. */
  readonly mark?: IndexValue;
  readonly count?: number;
  readonly content?: unknown;
}

export const things: Collection<Thing, 'byGroup' | 'byRank' | 'marked'> = {
  name: 'things',
  indexes: { byGroup: ['group', 'rank'], byRank: ['rank'], marked: { fields: ['mark', 'rank'], omitsNull: true } },
};

export const collections = [things, keys];

/** Values in the order of every index. */
export const inOrder: IndexValue[] = [
  null,
  -1.5e300,
  -1,
  0,
  0.1,
  0.30000000000000004,
  1,
  10,
  2 ** 53 - 1,
  87813263637910020,
  1e21,
  '',
  '\0',
  '$',
  '10',
  '9',
  'Z',
  'a',
  'a\0b',
  'ab',
  'é',
  '\uffff',
  '😀',
  false,
  true,
  new Date('0000-01-01T00:00:00.000Z'),
  new Date('1969-12-31T23:59:59.999Z'),
  new Date('2026-01-01T00:00:00.000Z'),
  new Date('2026-01-01T00:00:00.500Z'),
  new Date('9999-12-31T23:59:59.999Z'),
];

export type StoreTest = TestAPI<{ store: Store }>;

export function idsOf(found: readonly Thing[]): string[] {
  return found.map(({ id }) => id);
}

export async function expectCode(operation: Promise<unknown>, code: StoreError['code']): Promise<void> {
  const error: unknown = await operation.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toHaveProperty('code', code);
}
