import type { Express } from 'express';
import { expect, test } from 'vitest';
import { silentLog } from '../core/log/log.ts';
import { openMetrics } from '../core/metrics/metrics.ts';
import { table } from '../test/authorization/api-rows.ts';
import { newApp } from './app.ts';
import type { Api } from './dependencies.ts';
import { apiRoutes } from './routes.ts';

test('every route has a row in the matrix of its callers, and every row a route', () => {
  expect(routesOf(appWithRoutes()).toSorted()).toEqual(Object.keys(table).toSorted());
});

/** The application with all its routes; no request can be answered. */
function appWithRoutes(): Express {
  const deps = { log: silentLog(), metrics: openMetrics(), urls: {} };
  return newApp(deps as unknown as Api, apiRoutes);
}

/** The routes that Express answers, apart from preflight requests. */
function routesOf(app: Express): string[] {
  return app.router.stack
    .flatMap(({ route }) => route?.stack.map(({ method }) => `${method.toUpperCase()} ${route.path}`) ?? [])
    .filter((each, i, all) => !each.startsWith('OPTIONS ') && all.indexOf(each) === i);
}
