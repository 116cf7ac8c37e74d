import type { Express } from 'express';
import { expect, test } from 'vitest';
import { silentLog } from '../core/log/log.ts';
import { table } from '../test/authorization/api-rows.ts';
import { newPages } from './app.ts';
import type { Api } from './dependencies.ts';
import { apiRoutes } from './routes.ts';

test('every route has a row in the matrix of its callers, and every row a route', async () => {
  const endpoints = apiRoutes.flatMap((each) => ('endpoint' in each ? each.endpoint : []));
  const declared = endpoints.map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`);
  expect([...declared, ...routesOf(await pages())].toSorted()).toEqual(Object.keys(table).toSorted());
});

/** The pages; no request can be answered. */
async function pages(): Promise<Express> {
  return await newPages({ log: silentLog(), urls: {} } as unknown as Api, apiRoutes, { methods: () => [] });
}

/** The routes that Express answers. */
function routesOf(app: Express): string[] {
  return app.router.stack.flatMap(
    ({ route }) => route?.stack.map(({ method }) => `${method.toUpperCase()} ${route.path}`) ?? [],
  );
}
