/** Trust rules, and the exchange of ID tokens for deploy tokens. */
import type { IncomingMessage } from 'node:http';
import { endpoints } from '../../contract/endpoints.ts';
import type { TrustRuleObject } from '../../contract/trust.ts';
import { clientAddress } from '../../core/http/client-address.ts';
import { requestId } from '../../core/http/request-id.ts';
import { accessTokenDocument, accessTokens, newSecret, publicTokenId, tokenText } from '../../model/access-token.ts';
import { ApiError } from '../../model/api-error.ts';
import { auditRecords, newAuditRecord, withStatus } from '../../model/audit.ts';
import { newTrustRule, trustRules, trusts } from '../../model/trust-rule.ts';
import type { DeploymentClaims, TrustRule } from '../../model/trust-rule.ts';
import { useIdToken } from '../../model/used-id-token.ts';
import { ownAccount } from '../access.ts';
import { answer } from '../app.ts';
import type { Api } from '../dependencies.ts';
import { findPage } from '../pages.ts';
import { failedCheck } from '../failed-checks.ts';

export const trustEndpoints = [
  answer(endpoints.createTrustRule, async (api, { parameters, body, caller }) => {
    const { account } = ownAccount(caller, parameters.account);
    if (!api.idTokens.accepts(body.issuer)) {
      throw new ApiError('BadRequest', 'issuer: Not accepted by this platform, add it to BERTH_OIDC_ISSUERS');
    }
    const rule = newTrustRule({
      account,
      issuer: body.issuer,
      repository: body.repository,
      ...(body.branch !== undefined && { branch: body.branch }),
      ...(body.environment !== undefined && { environment: body.environment }),
      scopes: [...new Set(body.scopes)],
      ...(body.services && { services: [...new Set(body.services)] }),
      lifetimeSeconds: body.lifetime_seconds,
      createdAt: await api.store.now(),
    });
    await api.store.insert(trustRules, rule);
    return presentRule(rule);
  }),
  answer(endpoints.listTrustRules, async (api, { parameters, query, caller }) => {
    const { account } = ownAccount(caller, parameters.account);
    const ofAccount = { index: 'byAccount', equals: { account }, order: 'descending' } as const;
    const list = { collection: trustRules, query: ofAccount, by: 'createdAt', type: 'time' } as const;
    const { items, next } = await findPage(api.store, list, query);
    return { rules: items.map(presentRule), ...next };
  }),
  answer(endpoints.deleteTrustRule, async (api, { parameters, caller }) => {
    const { account } = ownAccount(caller, parameters.account);
    const isOwn = (rule: TrustRule) => rule.account === account;
    if (!(await api.store.delete(trustRules, parameters.rule_id, isOwn))) {
      throw new ApiError('TrustRuleNotFound', `There is no trust rule "${parameters.rule_id}"`);
    }
  }),
  answer(endpoints.exchangeIdToken, async (api, { parameters, body, request }) => {
    const { claims, rule } = await checkIdToken(api, request, parameters.account, body.id_token);
    return await deploy(api, request, rule, claims);
  }),
];

/**
 * Checks an ID token, and marks it as used: after a crash before the deploy token is issued, the deployment must request another.
 * Throws `Unauthorized`, `Forbidden`, `Unavailable`, and `TooManyRequests` when the network has sent too many invalid ID tokens. Valid
 * ones are still accepted, because deployments may share the network.
 */
async function checkIdToken(api: Api, request: IncomingMessage, account: string, idToken: string) {
  try {
    const { claims, use } = await api.idTokens.verify(idToken, await api.store.now());
    const rule = await ruleFor(api, account, claims);
    // Last, because clients without a trust rule must not be able to fill the store.
    if (!(await useIdToken(api.store, use))) {
      throw new ApiError('Unauthorized', 'The ID token is not valid: it was used before, request another');
    }
    return { claims, rule };
  } catch (error) {
    const isRejected = error instanceof ApiError && error.code !== 'Unavailable';
    throw isRejected ? await failedCheck(api, request, error) : error;
  }
}

/** The rule that allows a deployment; of several, the newest. An account that does not exist has none. Throws `Forbidden`. */
async function ruleFor(api: Api, account: string, claims: DeploymentClaims): Promise<TrustRule> {
  const rules = await api.store.find(trustRules, { index: 'byAccount', equals: { account }, order: 'descending' });
  const rule = rules.find((each) => trusts(each, claims));
  if (rule) return rule;
  const { repository, ref = 'none', environment = 'none' } = claims;
  throw new ApiError(
    'Forbidden',
    `No trust rule of account "${account}" allows repository "${repository}", ref "${ref}", environment "${environment}"`,
  );
}

async function deploy(api: Api, request: IncomingMessage, rule: TrustRule, claims: DeploymentClaims) {
  const { account, scopes, services } = rule;
  const now = await api.store.now();
  const expiresAt = new Date(now.getTime() + rule.lifetimeSeconds * 1000);
  const secret = newSecret('deploy');
  const name = `${claims.repository} ${claims.ref ?? ''}`.trim().slice(0, 100);
  const about = { kind: 'deploy', account, name, scopes, ...(services && { services }), expiresAt } as const;
  const document = accessTokenDocument(secret, about, now);
  // Before the token, so that no token lacks a record.
  const { repository, ref, environment } = claims;
  const record = newAuditRecord({
    account,
    at: now,
    action: 'exchangeIdToken',
    details: { rule_id: rule.id, repository, ...(ref && { ref }), ...(environment && { environment }) },
    token: publicTokenId(document),
    address: clientAddress(request, api.behindLoadBalancer),
    request: requestId(request),
  });
  await api.store.insert(auditRecords, withStatus(record, endpoints.exchangeIdToken.status));
  await api.store.insert(accessTokens, document);
  return {
    token: tokenText(secret, account),
    scopes: [...scopes],
    services: services ? [...services] : null,
    expires_at: expiresAt.toISOString(),
  };
}

function presentRule(rule: TrustRule): TrustRuleObject {
  return {
    id: rule.id,
    issuer: rule.issuer,
    repository: rule.repository,
    branch: rule.branch ?? null,
    environment: rule.environment ?? null,
    scopes: [...rule.scopes],
    services: rule.services ? [...rule.services] : null,
    lifetime_seconds: rule.lifetimeSeconds,
    created_at: rule.createdAt.toISOString(),
  };
}
