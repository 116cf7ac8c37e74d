/** Checks that the OpenAPI document is complete, and that its examples are valid. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { allEndpoints } from '../contract/all-endpoints.ts';
import { serviceErrors } from '../contract/errors.ts';
import { openApiDocument } from './openapi.ts';

interface Content {
  readonly [type: string]: {
    readonly schema?: object;
    readonly example?: unknown;
    readonly examples?: Readonly<Record<string, { readonly value: { readonly error: { readonly status: number } } }>>;
  };
}

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly security?: readonly object[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

const document = openApiDocument('1.0.0') as unknown as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: { readonly schemas: object; readonly securitySchemes: object };
};

const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));

test('every endpoint is described', () => {
  expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(Object.keys(allEndpoints).toSorted());
});

test('every operation is in a group, and every group has operations', () => {
  const groups = Map.groupBy(operations, ({ tags: [tag] }) => tag);
  expect([...groups.keys()].toSorted()).toEqual(document.tags.map(({ name }) => name).toSorted());
});

test('every security scheme that an endpoint names is described', () => {
  const named = operations.flatMap(({ security = [] }) => security.flatMap((each) => Object.keys(each)));
  expect(named.length).toBeGreaterThan(0);
  expect(Object.keys(document.components.securitySchemes)).toEqual(expect.arrayContaining(named));
});

test.each(operations)('the examples of $operationId are valid', ({ requestBody, responses }) => {
  const contents = [requestBody?.content, ...Object.values(responses).map(({ content }) => content)];
  const bodies = contents.flatMap((content) => {
    const body = content?.['application/json'] ?? content?.['text/event-stream'];
    return body?.schema && !body.examples ? [body] : [];
  });
  for (const { schema = {}, example } of bodies)
    expect({ schema, problem: problemOf(schema, example) }).toEqual({ schema });
});

test.each(operations)('the errors of $operationId have their status', ({ responses }) => {
  const errors = Object.entries(responses).flatMap(([status, { content }]) =>
    Object.entries(content?.['application/json']?.examples ?? {}).map(([code, { value }]) => ({ status, code, value })),
  );
  expect(errors.length).toBeGreaterThan(0);
  for (const { status, code, value } of errors) {
    expect([Number(status), value.error.status]).toEqual(
      Array.from({ length: 2 }, () => serviceErrors[code as keyof typeof serviceErrors].status),
    );
  }
});

/** Validates an example against the schema in the document. Returns the problem. */
function problemOf(schema: object, example: unknown): string | undefined {
  const text = JSON.stringify({ ...schema, $defs: document.components.schemas });
  // zod does not support `if` and `then`.
  const withoutConditions = (name: string, value: unknown) => (name === 'if' || name === 'then' ? undefined : value);
  const parsed = z.fromJSONSchema(
    JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/'), withoutConditions) as Parameters<
      typeof z.fromJSONSchema
    >[0],
  );
  return parsed.safeParse(example).error?.message;
}
