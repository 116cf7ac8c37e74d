/**
 * The access that each route of the API requires. The table is written by hand: a route that is not in it, or whose access is changed
 * only in the contract, fails tests.
 */
import { scopes } from '../../contract/scopes.ts';
import type { Scope } from '../../contract/scopes.ts';

/**
 * A scope, or `open`: no token is needed. `proof`: tokens are ignored, because the request itself authenticates the caller. `any`:
 * any valid token. `login`: the log-in of a user. `own`: any valid token of the account. `owner`: an owner of the account, with the
 * scope `manage`. `admin`: a logged-in administrator. `spawn-token`: the spawn token in the path, and no access token.
 */
export type Access = Scope | 'open' | 'proof' | 'any' | 'login' | 'own' | 'owner' | 'admin' | 'spawn-token';

export interface Row {
  readonly access: Access;
  readonly body?: object;
  /** The result for a caller with access, if it is not `allowed`. */
  readonly whenAllowed?: Kind;
  /** Other results for some callers. */
  readonly except?: Partial<Record<CallerName, Kind>>;
}

export type Kind = 'allowed' | 'unauthorized' | 'forbidden' | 'absent';

const openTo = (access: Access, body?: object): Row => ({ access, ...(body && { body }) });

const spawned = { key: 'matrix', lock: 'matrix' };
export const newToken = { name: 'new', scopes: ['manage'] };
const update = { image_tag: 'latest' };
const trustRule = { repository: 'acme/draw' };

const older = (prefix: string): Record<string, Row> => ({
  [`GET ${prefix}/auth`]: openTo('any'),
  [`POST ${prefix}/user/:account/service`]: openTo('manage', { name: 'new' }),
  [`GET ${prefix}/user/:account/services`]: openTo('read'),
  [`POST ${prefix}/user/:account/service/:service/spawn`]: openTo('connect', { lock: spawned.lock }),
  [`POST ${prefix}/user/:account/service/:service/fetch`]: openTo('connect', { lock: 'held' }),
  [`GET ${prefix}/backend/:backend_name/status`]: openTo('open'),
  [`GET ${prefix}/backend/:backend_name/status/stream`]: openTo('open'),
  [`GET ${prefix}/backend/:backend_name/logs`]: openTo('read'),
  [`GET ${prefix}/backend/:backend_name/ready`]: openTo('open'),
  [`POST ${prefix}/backend/:backend_name/terminate`]: openTo('connect'),
});

export const table: Readonly<Record<string, Row>> = {
  'POST /v2/service/:account/:service/connect': openTo('connect', { key: spawned.key }),
  'POST /v2/service/:account/:service/:environment/connect': openTo('connect'),
  'GET /v2/backend/:backend_id/status': openTo('open'),
  'GET /v2/backend/:backend_id/status/stream': openTo('open'),
  'GET /v2/backend/:backend_id': openTo('read'),
  'GET /v2/backend/:backend_id/logs/stream': openTo('read'),
  'GET /v2/backend/:backend_id/metrics/stream': openTo('read'),
  'GET /v2/backend/:backend_id/traffic': openTo('read'),
  'POST /v2/backend/:backend_id/terminate': openTo('connect', { hard: true }),
  'GET /v2/service/:account/:service/backends': openTo('read'),
  'GET /v2/account/:account/backends': openTo('read'),
  'POST /v2/account/:account/service': openTo('manage', { name: 'new' }),
  'GET /v2/account/:account/services': openTo('read'),
  'GET /v2/account/:account/tokens': openTo('manage'),
  'POST /v2/account/:account/token': openTo('manage', newToken),
  // The token of this test acts for no user, and a member may revoke only tokens that act for that member.
  'POST /v2/account/:account/token/:token_id/revoke': { access: 'manage', except: { 'a member': 'absent' } },
  'GET /v2/service/:account/:service': openTo('read'),
  'GET /v2/service/:account/:service/images': openTo('read'),
  'POST /v2/service/:account/:service/images': openTo('push'),
  'GET /v2/service/:account/:service/images/:digest/archive': openTo('read'),
  'POST /v2/service/:account/:service/update': openTo('deploy', update),
  'POST /v2/service/:account/:service/:environment/update': openTo('deploy', update),
  'POST /v2/service/:account/:service/delete': openTo('manage'),
  'GET /v2/service/:account/:service/environments': openTo('read'),
  'POST /v2/service/:account/:service/environments': openTo('manage', { name: 'new' }),
  'POST /v2/service/:account/:service/:environment/delete': openTo('manage'),
  'GET /v2/service/:account/:service/settings': openTo('read'),
  'POST /v2/service/:account/:service/settings': openTo('manage', {}),
  'GET /v2/service/:account/:service/visibility': openTo('read'),
  'POST /v2/service/:account/:service/visibility': openTo('manage', { public: false }),
  ...older('/v1'),
  ...older(''),
  'GET /user/:account/service/:service/image': openTo('own'),
  'GET /service/:account/:service/image-name': openTo('own'),
  'POST /service/:account/:service/terminate-backends': openTo('connect', { before: '2000-01-01T00:00:00Z' }),
  'POST /user/:account/service/:service/token': openTo('manage'),
  'POST /token/:token/spawn': openTo('spawn-token'),
  'DELETE /token/:token': openTo('manage'),
  'GET /ready/:backend/:token': openTo('open'),
  'GET /ready/:backend/:token/events': openTo('open'),
  'GET /v2/account/:account/members': openTo('owner'),
  'GET /v2/account/:account/limits': openTo('read'),
  'POST /v2/account/:account/limits': openTo('admin', {}),
  'GET /v2/account/:account/audit': openTo('owner'),
  'GET /v2/audit': openTo('admin'),
  'POST /v2/account/:account/trust': openTo('owner', trustRule),
  'GET /v2/account/:account/trusts': openTo('owner'),
  'POST /v2/account/:account/trust/:rule_id/delete': { access: 'owner', whenAllowed: 'absent' },
  'POST /v2/account/:account/oidc-token': openTo('proof'),
  'POST /v2/account/:account/member': openTo('owner', { user_email: 'viewer@example.com', role: 'viewer' }),
  'POST /v2/account/:account/member/:user_email/remove': openTo('owner'),
  'GET /v2/accounts': openTo('any'),
  // Requests without a body: for callers with access, only the check of the body fails.
  'POST /v2/account': openTo('admin'),
  'POST /v2/user': openTo('admin'),
  'POST /v2/user/:user_email/invite': openTo('admin'),
  'POST /v2/user/:user_email/update': openTo('admin'),
  'GET /v2/users': openTo('admin'),
  'GET /v2/nodes': openTo('admin'),
  'POST /v2/node/:node/drain': { access: 'admin', whenAllowed: 'absent' },
  'POST /v2/node/:node/undrain': { access: 'admin', whenAllowed: 'absent' },
  'POST /v2/user/password': openTo('login'),
  'POST /user-session/:uuid/delete': { access: 'login', whenAllowed: 'absent' },
  'GET /v2/user/logins': openTo('login'),
  'POST /v2/user/logins/end-others': openTo('login'),
  'POST /v2/session': openTo('proof'),
  'POST /v2/setup': openTo('proof'),
  'POST /v2/invitation': openTo('proof'),
  'POST /cli-login': openTo('proof'),
  'POST /cli-login/:token': openTo('proof'),
  'POST /cli-login/:token/complete': openTo('proof'),
  'GET /cli-login/:token/status/stream': openTo('proof'),
  'GET /cli-login/:token': openTo('proof'),
  'POST /login': openTo('proof'),
  'POST /logout': openTo('proof'),
  'POST /setup': openTo('proof'),
  'POST /invitation': openTo('proof'),
  'GET /login': openTo('open'),
  'GET /setup': openTo('proof'),
  'GET /invitation': openTo('proof'),
  'GET /openapi.json': openTo('open'),
  'GET /docs': openTo('open'),
  'GET /docs/page.js': openTo('open'),
  'GET /docs/swagger-ui-bundle.js': openTo('open'),
  'GET /docs/swagger-ui.css': openTo('open'),
};

/** Callers with an `Authorization` header, or none. */
export const bearers = [
  'without a token',
  'with a malformed header',
  'with a token that was never issued',
  'with an expired token',
  'with a revoked token',
  'of another account',
  'limited to another service',
  'limited to the service',
  ...scopes.map((scope) => `with the scope ${scope} alone` as const),
  'with all scopes',
] as const;

/** Callers that have logged in with a browser. */
export const people = ['a viewer', 'a member', 'an owner', 'an administrator'] as const;

export type CallerName = (typeof bearers)[number] | (typeof people)[number];
