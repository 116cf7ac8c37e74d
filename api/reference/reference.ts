/** The OpenAPI document, and a page that shows it with Swagger UI. The page loads nothing from another host. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Express, RequestHandler, Response } from 'express';

const swaggerUi = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The files that the pages need. Clients get no others. */
const files: Readonly<Record<string, { readonly path: string; readonly type: string }>> = {
  '/openapi.json': { path: join(import.meta.dirname, '../../docs/openapi.json'), type: 'application/json' },
  '/docs': { path: join(import.meta.dirname, 'page.html'), type: 'text/html; charset=utf-8' },
  '/docs/page.js': { path: join(import.meta.dirname, 'page.js'), type: 'text/javascript; charset=utf-8' },
  '/docs/swagger-ui.css': { path: join(swaggerUi, 'swagger-ui.css'), type: 'text/css; charset=utf-8' },
  '/docs/swagger-ui-bundle.js': {
    path: join(swaggerUi, 'swagger-ui-bundle.js'),
    type: 'text/javascript; charset=utf-8',
  },
};

/**
 * Swagger UI has its icons as `data:` images. It sends requests to this API alone, so a token that is typed into the page cannot
 * reach another host.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Adds `/openapi.json` and `/docs`. They need no token: they show nothing but what is published with Berth. */
export function mountReference(app: Express): void {
  for (const [path, file] of Object.entries(files)) app.get(path, sender(file.path, file.type));
}

function sender(path: string, type: string): RequestHandler {
  return async (_request, response) => {
    const headers = {
      'content-type': type,
      // The next release has other contents at the same path.
      'cache-control': 'no-cache',
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    };
    await sendFile(response, path, headers);
  };
}

async function sendFile(response: Response, path: string, headers: Readonly<Record<string, string>>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    response.sendFile(path, { headers, cacheControl: false, dotfiles: 'allow' }, (error) => {
      // The client may disconnect before the end.
      if (error && !response.destroyed) reject(error);
      else resolve();
    });
  });
}
