/** The endpoints about accounts: their tokens, people and rules. */
import { z } from 'zod';
import { get, post } from './endpoint.ts';
import { listOf } from './pages.ts';
import {
  accountObject,
  auditObject,
  changePasswordRequest,
  cliLogin,
  cliLoginStatus,
  cliSession,
  completeCliLoginRequest,
  createAccountRequest,
  createUserRequest,
  invitation,
  invitationRequest,
  limitsObject,
  limitsRequest,
  logInObject,
  logInRequest,
  memberObject,
  memberRequest,
  sessionObject,
  setUpRequest,
  updateUserRequest,
  userObject,
} from './people.ts';
import { createdToken, createTokenRequest, tokenObject } from './tokens.ts';
import { deployToken, exchangeRequest, trustRuleObject, trustRuleRequest } from './trust.ts';

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
    summary:
      'Access tokens of an account, newest first: all tokens for an owner, otherwise the tokens that act for the caller',
    access: 'manage',
    ...listOf({ tokens: tokenObject }),
    errors: ['AccountNotFound'],
  }),
  revokeToken: post('/v2/account/{account}/token/{token_id}/revoke', {
    summary: 'Revoke an access token: within a second, no process accepts it, and its open streams end',
    access: 'manage',
    errors: ['AccountNotFound', 'TokenNotFound'],
  }),
  setUp: post('/v2/setup', {
    summary: 'Create the first administrator with the set-up code, which the first start writes to its data folder',
    access: 'proof',
    body: setUpRequest,
    errors: ['Forbidden', 'TooManyRequests'],
  }),
  acceptInvitation: post('/v2/invitation', {
    summary: 'Set the password of a user with the code of an invitation',
    access: 'proof',
    body: invitationRequest,
    errors: ['Forbidden', 'TooManyRequests'],
  }),
  logIn: post('/v2/session', {
    summary: 'Log a browser in: the answer sets a cookie',
    access: 'proof',
    body: logInRequest,
    answer: sessionObject,
    errors: ['Unauthorized', 'Forbidden', 'TooManyRequests'],
  }),
  logOut: post('/user-session/{uuid}/delete', {
    summary: 'End a log-in of the caller, of a browser or a command line',
    access: 'login',
    errors: ['TokenNotFound'],
  }),
  listLogIns: get('/v2/user/logins', {
    summary: 'Log-ins of the caller with browsers and command lines that have not ended, newest first',
    access: 'login',
    ...listOf({ log_ins: logInObject }),
  }),
  logOutOthers: post('/v2/user/logins/end-others', {
    summary: 'End all log-ins of the caller except the one that sends the request',
    access: 'login',
  }),
  changePassword: post('/v2/user/password', {
    summary: 'Change the password of the caller, which ends all log-ins',
    access: 'login',
    body: changePasswordRequest,
    errors: ['TooManyRequests'],
  }),
  createUser: post('/v2/user', {
    summary: 'Create a user, who sets a password with the invitation in the answer',
    access: 'admin',
    body: createUserRequest,
    status: 201,
    answer: invitation,
    errors: ['UserExists'],
  }),
  listUsers: get('/v2/users', {
    summary: 'Users of the platform, oldest first',
    access: 'admin',
    ...listOf({ users: userObject }),
  }),
  inviteUser: post('/v2/user/{user_email}/invite', {
    summary:
      'Invite a user to set a new password, with the invitation in the answer; earlier invitations become invalid',
    access: 'admin',
    status: 201,
    answer: invitation,
    errors: ['UserNotFound'],
  }),
  updateUser: post('/v2/user/{user_email}/update', {
    summary: 'Grant or revoke the rights of an administrator, disable or enable a user',
    access: 'admin',
    body: updateUserRequest,
    errors: ['UserNotFound', 'LastAdministrator'],
  }),
  createAccount: post('/v2/account', {
    summary: 'Create an account',
    access: 'admin',
    body: createAccountRequest,
    status: 201,
    errors: ['AccountExists', 'UserNotFound'],
  }),
  listAccounts: get('/v2/accounts', {
    summary: 'The accounts that the token is valid for; for the log-in of an administrator, all accounts',
    access: 'any',
    ...listOf({ accounts: accountObject }),
  }),
  listMembers: get('/v2/account/{account}/members', {
    summary: 'Members of an account',
    access: 'owner',
    answer: z.strictObject({ members: z.array(memberObject) }),
    errors: ['AccountNotFound'],
  }),
  setMember: post('/v2/account/{account}/member', {
    summary: 'Add a user to an account, or change the role',
    access: 'owner',
    body: memberRequest,
    errors: ['AccountNotFound', 'UserNotFound', 'LastOwner'],
  }),
  removeMember: post('/v2/account/{account}/member/{user_email}/remove', {
    summary: 'Remove a user from an account: tokens of the user stop working there within a second',
    access: 'owner',
    errors: ['AccountNotFound', 'UserNotFound', 'LastOwner'],
  }),
  beginCliLogin: post('/cli-login', {
    summary: 'Begin the log-in of a command line, which a user confirms in a browser at `/cli-login/{token}`',
    access: 'proof',
    answer: cliLogin,
    errors: ['TooManyRequests'],
  }),
  cliLoginStatus: get('/cli-login/{token}/status/stream', {
    summary: 'One event when the log-in of a command line was confirmed or has expired',
    access: 'proof',
    answer: cliLoginStatus,
    stream: true,
    errors: ['CliLoginNotFound'],
  }),
  completeCliLogin: post('/cli-login/{token}/complete', {
    summary: 'Complete the log-in of a command line with the code that the page has shown',
    access: 'proof',
    body: completeCliLoginRequest,
    answer: cliSession,
    errors: ['CliLoginNotFound', 'Forbidden'],
  }),
  accountLimits: get('/v2/account/{account}/limits', {
    summary: 'How often an account may connect, and how many backends it may run',
    access: 'read',
    answer: limitsObject,
    errors: ['AccountNotFound'],
  }),
  setAccountLimits: post('/v2/account/{account}/limits', {
    summary: 'Limit how often an account may connect, and how many backends it may run',
    access: 'admin',
    body: limitsRequest,
    errors: ['AccountNotFound'],
  }),
  accountAudit: get('/v2/account/{account}/audit', {
    summary: 'The changes in an account, with the user, token and address of each, newest first',
    access: 'owner',
    ...listOf({ records: auditObject }),
    errors: ['AccountNotFound'],
  }),
  platformAudit: get('/v2/audit', {
    summary: 'The changes outside of accounts (users, accounts, log-ins), newest first',
    access: 'admin',
    ...listOf({ records: auditObject }),
  }),
  createTrustRule: post('/v2/account/{account}/trust', {
    summary:
      'Allow deployments of a repository to exchange their ID token (OpenID Connect) for a short-lived deploy token',
    access: 'owner',
    body: trustRuleRequest,
    status: 201,
    answer: trustRuleObject,
    errors: ['AccountNotFound'],
  }),
  listTrustRules: get('/v2/account/{account}/trusts', {
    summary: 'Trust rules of an account, newest first',
    access: 'owner',
    ...listOf({ rules: trustRuleObject }),
    errors: ['AccountNotFound'],
  }),
  deleteTrustRule: post('/v2/account/{account}/trust/{rule_id}/delete', {
    summary: 'Delete a trust rule; deploy tokens that it has issued expire by themselves',
    access: 'owner',
    errors: ['AccountNotFound', 'TrustRuleNotFound'],
  }),
  exchangeIdToken: post('/v2/account/{account}/oidc-token', {
    summary: 'Exchange the ID token of a deployment, with the URL of the API as its audience, for a deploy token',
    access: 'proof',
    body: exchangeRequest,
    status: 201,
    answer: deployToken,
    errors: ['Unauthorized', 'Forbidden', 'TooManyRequests'],
  }),
};
