/** Accounts: their members, limits, access tokens, trust rules and audit. */
import { sendChange, sendIdempotent } from './changes.ts';
import type { CallOptions } from './changes.ts';
import type {
  AccessToken,
  Account,
  AccountLimits,
  AccountLimitsRequest,
  AuditRecord,
  CreateAccountRequest,
  CreatedAccessToken,
  CreateTokenRequest,
  DeployToken,
  Member,
  MemberRequest,
  TrustRule,
  TrustRuleRequest,
} from './contract.ts';
import { EndpointGroup } from './endpoint-group.ts';
import type { ListOptions } from './transport.ts';

export class Accounts extends EndpointGroup {
  /** The accounts that the token is valid for; for an administrator who has logged in, all accounts. */
  list(options?: ListOptions): AsyncGenerator<Account, void, undefined> {
    return this.transport.list('listAccounts', 'accounts', { path: undefined }, options);
  }

  async create(account: CreateAccountRequest, options?: CallOptions): Promise<void> {
    const input = { path: undefined, body: account };
    await sendChange(this.transport, 'createAccount', input, { options, doneBefore: ['AccountExists'] });
  }

  async members(account: string, options?: CallOptions): Promise<Member[]> {
    return (await this.transport.json('listMembers', { path: { account } }, options)).members;
  }

  /** Adds a user to an account, or changes the role. */
  async setMember(account: string, member: MemberRequest, options?: CallOptions): Promise<void> {
    await sendIdempotent(this.transport, 'setMember', { path: { account }, body: member }, options);
  }

  /** Removes a user from an account. Tokens of the user stop working there within a second. */
  async removeMember(account: string, email: string, options?: CallOptions): Promise<void> {
    const input = { path: { account, user_email: email } };
    await sendChange(this.transport, 'removeMember', input, { options, doneBefore: ['UserNotFound'] });
  }

  async limits(account: string, options?: CallOptions): Promise<AccountLimits> {
    return await this.transport.json('accountLimits', { path: { account } }, options);
  }

  /** Changes limits of an account. `null` restores the default limit. */
  async setLimits(account: string, limits: AccountLimitsRequest, options?: CallOptions): Promise<void> {
    await sendIdempotent(this.transport, 'setAccountLimits', { path: { account }, body: limits }, options);
  }

  /** The changes in an account, newest first. */
  audit(account: string, options?: ListOptions): AsyncGenerator<AuditRecord, void, undefined> {
    return this.transport.list('accountAudit', 'records', { path: { account } }, options);
  }

  /** The changes outside of accounts (users, accounts, log-ins), newest first. */
  platformAudit(options?: ListOptions): AsyncGenerator<AuditRecord, void, undefined> {
    return this.transport.list('platformAudit', 'records', { path: undefined }, options);
  }
}

/** Access tokens of accounts. */
export class AccessTokens extends EndpointGroup {
  /** The tokens of an account, newest first: all tokens for an owner, otherwise the tokens that act for the caller. */
  list(account: string, options?: ListOptions): AsyncGenerator<AccessToken, void, undefined> {
    return this.transport.list('listTokens', 'tokens', { path: { account } }, options);
  }

  /** Creates a token, which may allow no more than the caller may do. Only this response contains the secret. */
  async create(account: string, token: CreateTokenRequest, options?: CallOptions): Promise<CreatedAccessToken> {
    return await this.transport.json('createToken', { path: { account }, body: token }, options);
  }

  /** Revokes a token by its ID. Within a second, all processes reject it. */
  async revoke(account: string, id: string, options?: CallOptions): Promise<void> {
    const input = { path: { account, token_id: id } };
    await sendChange(this.transport, 'revokeToken', input, { options, doneBefore: ['TokenNotFound'] });
  }
}

/** Trust rules, by which deployments get tokens without a stored secret. */
export class TrustRules extends EndpointGroup {
  list(account: string, options?: ListOptions): AsyncGenerator<TrustRule, void, undefined> {
    return this.transport.list('listTrustRules', 'rules', { path: { account } }, options);
  }

  async create(account: string, rule: TrustRuleRequest, options?: CallOptions): Promise<TrustRule> {
    return await this.transport.json('createTrustRule', { path: { account }, body: rule }, options);
  }

  async delete(account: string, id: string, options?: CallOptions): Promise<void> {
    const input = { path: { account, rule_id: id } };
    await sendChange(this.transport, 'deleteTrustRule', input, { options, doneBefore: ['TrustRuleNotFound'] });
  }

  /**
   * Exchanges the ID token of a deployment for a deploy token. The audience of the ID token is the address of the API. It can be exchanged
   * once: request another ID token to retry. Needs no access token.
   */
  async exchange(account: string, idToken: string, options?: CallOptions): Promise<DeployToken> {
    return await this.transport.json('exchangeIdToken', { path: { account }, body: { id_token: idToken } }, options);
  }
}
