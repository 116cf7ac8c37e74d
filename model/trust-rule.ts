/** Trust rules: which deployments may exchange their ID token (OpenID Connect) for a short-lived deploy token. */
import { randomBytes } from 'node:crypto';
import type { Scope } from '../contract/scopes.ts';
import type { Collection } from '../core/store/store.ts';

export interface TrustRule {
  readonly id: string;
  readonly account: string;
  /** The URL of the issuer of ID tokens. */
  readonly issuer: string;
  /** `<owner>/<name>`. */
  readonly repository: string;
  /** Absent: every branch and tag. */
  readonly branch?: string;
  /** The environment of the deployment. Absent: any, or none. */
  readonly environment?: string;
  /** What the deploy token allows. */
  readonly scopes: readonly Scope[];
  /** The only services that it is valid for. Absent: all. */
  readonly services?: readonly string[];
  readonly lifetimeSeconds: number;
  readonly createdAt: Date;
}

export const trustRules: Collection<TrustRule, 'byAccount'> = {
  name: 'trust-rules',
  indexes: { byAccount: ['account', 'createdAt'] },
};

/** The claims of an ID token about the deployment. */
export interface DeploymentClaims {
  readonly iss: string;
  readonly repository: string;
  readonly ref?: string | undefined;
  readonly environment?: string | undefined;
}

export function newTrustRule(rule: Omit<TrustRule, 'id'>): TrustRule {
  return { ...rule, id: randomBytes(10).toString('hex') };
}

/** Whether a rule allows a deployment. Names of repositories and environments are the same in capital and small letters on GitHub. */
export function trusts(rule: TrustRule, claims: DeploymentClaims): boolean {
  return (
    rule.issuer === claims.iss &&
    rule.repository.toLowerCase() === claims.repository.toLowerCase() &&
    (rule.branch === undefined || claims.ref === `refs/heads/${rule.branch}`) &&
    (rule.environment === undefined || rule.environment.toLowerCase() === claims.environment?.toLowerCase())
  );
}
