/** The endpoints about accounts: their tokens, people and rules. */
import { z } from 'zod';
import { get, ok, post } from './endpoint.ts';
import { pageFields, pageQuery } from './pages.ts';
import { createdToken, createTokenRequest, tokenObject } from './tokens.ts';

export const accountEndpoints = {
  createToken: post('/v2/account/{account}/token', {
    summary: 'Create an access token, which may allow no more than the caller may do',
    access: 'manage',
    body: createTokenRequest,
    status: 201,
    answer: createdToken,
    errors: ['AccountNotFound'],
  }),
  listTokens: get('/v2/account/{account}/tokens', {
    summary: 'Access tokens of an account, newest first: all for an owner, those that act for the caller otherwise',
    access: 'manage',
    query: pageQuery,
    answer: z.strictObject({ tokens: z.array(tokenObject), ...pageFields }),
    errors: ['AccountNotFound', 'BadRequest'],
  }),
  revokeToken: post('/v2/account/{account}/token/{token_id}/revoke', {
    summary: 'Revoke an access token: within a second, no process accepts it, and its open streams end',
    access: 'manage',
    answer: ok,
    errors: ['AccountNotFound', 'TokenNotFound'],
  }),
};
