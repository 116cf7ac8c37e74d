import { planQuery } from './query-plan.ts';
import type { AnyCollection, AnyQuery, PlannedRange } from './query-plan.ts';
import { comparable, fieldSql, indexName, typeBounds } from './sqlite-index.ts';
import type { SqlValue } from './sqlite-index.ts';
import type { IndexValue } from './store.ts';

/** A statement and the values of its parameters. */
export interface Sql {
  readonly text: string;
  readonly values: SqlValue[];
}

/** Writes a query as SQL that its index answers, in order, without sorting. Throws `StoreError` `not-indexed`. */
export function querySql(collection: AnyCollection, query: AnyQuery): Sql {
  const plan = planQuery(collection, query);
  const where = new Conditions();
  for (const { field, value } of plan.equals) {
    if (value === null) where.add(`${fieldSql(field)} IS NULL`);
    else where.compare(fieldSql(field), '=', value);
  }
  if (plan.range) addRange(where, plan.range);
  const direction = plan.descending ? 'DESC' : 'ASC';
  const order = [...plan.orderBy, 'id'].map((field) => `${fieldSql(field)} ${direction}`);
  const index = indexName(collection.name, query.index);
  return {
    text: `SELECT document FROM "${collection.name}" INDEXED BY "${index}"${where.sql()} ORDER BY ${order.join(', ')} LIMIT ?`,
    // SQLite takes a negative limit for none.
    values: [...where.values, plan.limit ?? -1],
  };
}

/** Adds the conditions of a range: its bounds, or where the values of its type start and end. */
function addRange(where: Conditions, range: PlannedRange): void {
  const column = fieldSql(range.field);
  const { type, lower, upper } = range;
  const { start, end } = typeBounds[type];
  if (lower) where.compare(column, lower.included ? '>=' : '>', lower.value);
  else where.add(`${column} ${start}`);
  if (upper) where.compare(column, upper.included ? '<=' : '<', upper.value);
  else if (end) where.add(`${column} ${end}`);
}

class Conditions {
  readonly values: SqlValue[] = [];
  readonly #texts: string[] = [];

  add(text: string): void {
    this.#texts.push(text);
  }

  compare(column: string, operator: '=' | '<' | '<=' | '>' | '>=', value: Exclude<IndexValue, null>): void {
    const { sql, parameter } = comparable(value);
    this.#texts.push(`${column} ${operator} ${sql}`);
    this.values.push(parameter);
  }

  sql(): string {
    return this.#texts.length > 0 ? ` WHERE ${this.#texts.join(' AND ')}` : '';
  }
}
