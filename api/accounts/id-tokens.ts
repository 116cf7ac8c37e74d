/** Checks ID tokens (OpenID Connect) with the public keys of their issuers. */
// The main module of 'jose' would load the whole library.
import type { JWTPayload } from 'jose';
import { JOSEError, JWKSTimeout, JWTClaimValidationFailed, JWTExpired } from 'jose/errors';
import { createRemoteJWKSet } from 'jose/jwks/remote';
import { decodeJwt } from 'jose/jwt/decode';
import { jwtVerify } from 'jose/jwt/verify';
import { z } from 'zod';
import { ApiError } from '../../model/api-error.ts';
import type { DeploymentClaims } from '../../model/trust-rule.ts';
import type { IdTokenUse } from '../../model/used-id-token.ts';

/** Keys come from the issuer's own host; a deployment waits for them. */
const timeoutMs = 5_000;

/** How much the clock of the issuer may differ from ours. */
const clockToleranceSeconds = 30;

/** A client requests an ID token just before the exchange; GitHub's are valid for five minutes. */
const maxAgeSeconds = 900;

/** Public-key signatures only: a token that is signed with a shared secret proves nothing here. */
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];

/** Errors of the issuer's key server: no answer in time, a status other than 200, or no JSON. */
const keyServerCodes: ReadonlySet<string> = new Set([JWKSTimeout.code, JOSEError.code]);

const discovery = z.object({ issuer: z.string(), jwks_uri: z.url() });

const claimsSchema = z.object({
  iss: z.string(),
  repository: z.string(),
  ref: z.string().optional(),
  environment: z.string().optional(),
});

interface VerifiedIdToken {
  readonly claims: DeploymentClaims;
  readonly use: IdTokenUse;
}

type KeySet = ReturnType<typeof createRemoteJWKSet>;

export class IdTokens {
  readonly #issuers: ReadonlySet<string>;
  readonly #audience: string;
  readonly #keySets = new Map<string, Promise<KeySet>>();

  /** @param audience - the audience that ID tokens must name: the URL of the API */
  constructor(issuers: readonly string[], audience: string) {
    this.#issuers = new Set(issuers);
    this.#audience = audience;
  }

  /** Whether ID tokens of an issuer are accepted. Keys are requested from accepted issuers only. */
  accepts(issuer: string): boolean {
    return this.#issuers.has(issuer);
  }

  /** Returns the claims and the identity of an ID token. Throws `Unauthorized`, and `Unavailable` when the issuer cannot be reached. */
  async verify(idToken: string, now: Date): Promise<VerifiedIdToken> {
    const issuer = issuerOf(idToken);
    if (issuer === undefined || !this.accepts(issuer)) throw invalid('its issuer is not accepted here');
    const keys = await this.#keysOf(issuer);
    try {
      const { payload } = await jwtVerify(idToken, keys, {
        algorithms,
        issuer,
        audience: this.#audience,
        currentDate: now,
        clockTolerance: clockToleranceSeconds,
        maxTokenAge: maxAgeSeconds,
        requiredClaims: ['exp', 'iat'],
      });
      return { claims: claimsSchema.parse(payload), use: { issuer, ...useOf(idToken, payload) } };
    } catch (error) {
      if (error instanceof z.ZodError) throw invalid('it names no repository', error);
      if (error instanceof JOSEError && keyServerCodes.has(error.code)) throw unreachable(issuer, error);
      if (error instanceof JOSEError) throw invalid(reasonOf(error), error);
      throw unreachable(issuer, error);
    }
  }

  async #keysOf(issuer: string): Promise<KeySet> {
    const known = this.#keySets.get(issuer);
    if (known) return await known;
    const keySet = discover(issuer).catch((error: unknown) => {
      this.#keySets.delete(issuer);
      throw unreachable(issuer, error);
    });
    this.#keySets.set(issuer, keySet);
    return await keySet;
  }
}

/** `jti` is optional: without it, the signed text identifies the ID token. */
function useOf(idToken: string, { jti, exp = 0, iat = 0 }: JWTPayload): Omit<IdTokenUse, 'issuer'> {
  const endsAtSeconds = Math.min(exp, iat + maxAgeSeconds) + clockToleranceSeconds;
  const name = jti ?? idToken.slice(0, idToken.lastIndexOf('.'));
  return { name, endsAt: new Date(endsAtSeconds * 1000) };
}

async function discover(issuer: string): Promise<KeySet> {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`, {
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  const found = discovery.parse(await response.json());
  const keysUrl = new URL(found.jwks_uri);
  if (found.issuer !== issuer || keysUrl.origin !== new URL(issuer).origin)
    throw new Error('The discovery document names another issuer');
  return createRemoteJWKSet(keysUrl, { timeoutDuration: timeoutMs });
}

function issuerOf(idToken: string): string | undefined {
  try {
    return decodeJwt(idToken).iss;
  } catch {
    return undefined;
  }
}

/** Explains the failure to the user who sets up the deployment. Nothing in it is secret: the caller has the token. */
function reasonOf(error: JOSEError): string {
  if (error instanceof JWTExpired) return 'it has expired';
  if (error instanceof JWTClaimValidationFailed) return `its claim "${error.claim}" is not the expected one`;
  return 'its signature is wrong';
}

function invalid(why: string, cause?: unknown): ApiError {
  return new ApiError('Unauthorized', `The ID token is not valid: ${why}`, { cause });
}

function unreachable(issuer: string, cause: unknown): ApiError {
  return new ApiError('Unavailable', `The keys of ${issuer} cannot be fetched, try again in a moment`, { cause });
}
