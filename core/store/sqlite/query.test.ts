import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { AnyCollection, AnyQuery } from '../query-plan.ts';
import { indexSql, querySql, tableSql } from './query.ts';

const things: AnyCollection = {
  name: 'some-things',
  indexes: {
    byAll: ['account', 'live', 'createdAt'],
    byId: ['account', 'id'],
    moved: { fields: ['movedAt', 'account'], omitsNull: true },
  },
};

const queries: AnyQuery[] = [
  { index: 'byAll' },
  { index: 'byAll', equals: { account: 'a' } },
  { index: 'byAll', equals: { account: null } },
  { index: 'byAll', equals: { account: 1, live: true } },
  { index: 'byAll', equals: { account: null, live: null, createdAt: new Date(0) } },
  { index: 'byAll', equals: { account: 'a', live: true, createdAt: new Date(0) }, range: { before: 'x' } },
  { index: 'byAll', range: { from: 'a' } },
  { index: 'byAll', range: { after: null } },
  { index: 'byAll', equals: { account: 1 }, range: { before: true } },
  { index: 'byAll', equals: { account: 'a', live: true }, range: { after: new Date(0), to: new Date(1) } },
  { index: 'byAll', equals: { live: false, account: null }, range: { before: new Date(0) } },
  { index: 'byAll', equals: { account: 'a' }, range: { from: 1, to: 2 }, limit: 3 },
  { index: 'byId', equals: { account: 'a' }, range: { after: 'x' } },
  { index: 'moved', range: { after: new Date(0) } },
  { index: 'moved', range: { before: 1 } },
  { index: 'moved', range: { after: null }, limit: 3 },
  { index: 'moved', equals: { movedAt: 'a' } },
  { index: 'moved', equals: { movedAt: new Date(0), account: null } },
  { index: 'moved', equals: { movedAt: true }, range: { from: 'a' } },
];

test.for(queries)('SQLite answers %o from the index, in order, without sorting', (query) => {
  const database = new DatabaseSync(':memory:');
  database.exec(tableSql(things));
  for (const sql of indexSql(things).values()) database.exec(sql);
  for (const order of ['ascending', 'descending'] as const) {
    const { text, values } = querySql(things, { ...query, order });
    const steps = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values) as { detail: string }[];
    expect(steps).toHaveLength(1);
    const conditions = Object.keys(query.equals ?? {}).length + (query.range ? 1 : 0);
    const step = (steps[0]?.detail ?? '').replaceAll('<expr>', 'expression');
    expect(step).toContain(`USING INDEX some-things.${query.index}`);
    expect(step.startsWith('SEARCH')).toBe(conditions > 0);
    // One "=" for each equality, "<" or ">" for a range: all conditions narrow the search.
    const equalities = step.match(/=/g)?.length ?? 0;
    expect(equalities).toBe(Object.keys(query.equals ?? {}).length);
    expect(/[<>]/.test(step)).toBe(query.range !== undefined);
  }
  database.close();
});

test('names that cannot be quoted are rejected', () => {
  expect(() => tableSql({ name: 'a"b', indexes: {} })).toThrow(TypeError);
  expect(() => indexSql({ name: 'a', indexes: { 'b"': ['c'] } })).toThrow(TypeError);
  expect(() => indexSql({ name: 'a', indexes: { b: ["c'"] } })).toThrow(TypeError);
});
