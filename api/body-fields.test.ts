// Takes about 13 s
/** Sends invalid values in every field of every request body. Generated from the contract, so that new fields are covered. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { allEndpoints } from '../contract/all-endpoints.ts';
import type { Endpoint } from '../contract/endpoint.ts';
import { addAdmin, logIn, ownPage } from './testing/people.ts';
import { openTestApi } from './testing/test-api.ts';
import type { Reply, TestApi } from './testing/test-api.ts';

let api: TestApi;
let cookie: string;
let spawnToken: string;
beforeAll(async () => {
  api = await openTestApi();
  await addAdmin(api, 'admin@example.com', 'acme');
  ({ cookie } = await logIn(api, 'admin@example.com'));
  spawnToken = (await api.post('/user/acme/service/draw/token')).body.token;
});
afterAll(async () => await api[Symbol.asyncDispose]());

/** Endpoints whose body is an object in JSON, and its fields. */
const bodies = Object.entries(allEndpoints).flatMap(([name, endpoint]) => {
  const fields = endpoint.body instanceof z.ZodObject ? Object.entries(endpoint.body.shape) : [];
  return endpoint.method === 'POST' && endpoint.archive === 'none' ? [{ name, endpoint, fields }] : [];
});

const cases = bodies.flatMap(({ name, endpoint, fields }) =>
  fields.map(([field, schema]) => ({ name, endpoint, field, schema: schema as z.ZodType })),
);

/** Values of every type, at their edges. */
const values: readonly unknown[] = [
  null,
  true,
  '',
  // The body of a request without a token may have 1 KiB.
  'x'.repeat(900),
  'nul\0',
  'right-to-left \u202E',
  '../../etc/passwd',
  'a/b',
  0,
  -1,
  0.5,
  1e300,
  [],
  [[]],
  {},
  { unknown: 1 },
  { ['__proto__']: 1, constructor: 2 },
];

/** A body as text: `JSON.stringify` drops a field that is called `__proto__`. */
function bodyWith(field: string, value: unknown): string {
  return `{${JSON.stringify(field)}:${JSON.stringify(value)}}`;
}

/** Sends a body as an administrator, who may call every endpoint. */
async function send({ path, access }: Endpoint, body: string): Promise<Reply> {
  const values = { account: 'acme', service: 'draw', environment: 'default', token: spawnToken };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => values[name as keyof typeof values] ?? 'x');
  const headers = { ...ownPage, ...(access !== 'spawn-token' && { cookie }) };
  return await api.call('POST', filled, { headers, body });
}

test('there are bodies with fields', () => {
  expect(bodies.length).toBeGreaterThan(20);
  expect(cases.length).toBeGreaterThan(40);
});

test.each(cases)('$name: $field', async ({ endpoint, field, schema }) => {
  const refused = values.filter((value) => !schema.safeParse(value).success);
  expect(refused.length).toBeGreaterThan(0);
  for (const value of refused) {
    const { status, body } = await send(endpoint, bodyWith(field, value));
    expect([value, status, body.error?.code]).toEqual([value, 400, 'BadRequest']);
    expect(body.error.message).toMatch(new RegExp(`(?:^|; )${field}[.:]`));
  }
});

test.each(bodies)('$name rejects unknown fields, and bodies that are not objects', async ({ endpoint }) => {
  for (const field of ['unknown', 'constructor', 'toString']) {
    const { status, body } = await send(endpoint, bodyWith(field, 1));
    expect([field, status, body.error?.code]).toEqual([field, 400, 'BadRequest']);
    expect(body.error.message).toContain(`${field}: There is no such field`);
  }
  for (const body of ['[]', '"text"', '1', 'null', 'true']) {
    expect([body, (await send(endpoint, body)).status]).toEqual([body, 400]);
  }
  // An own field of this name changes no prototype: the API drops or rejects it.
  const polluted = await send(endpoint, '{"__proto__":{"hard":true,"account":"other"}}');
  expect(polluted.status).toBeLessThan(500);
  expect(({} as Record<string, unknown>)['hard']).toBeUndefined();
});
