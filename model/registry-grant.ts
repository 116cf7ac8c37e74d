/** Registry grants: short-lived bearer tokens that say what their holder may do in which repository. */
import { SignJWT, errors, jwtVerify } from 'jose';
import { z } from 'zod';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';

const access = z.strictObject({
  type: z.literal('repository'),
  name: z.string(),
  actions: z.array(z.enum(['pull', 'push', 'delete'])),
});

const claims = z.object({ sub: z.string(), access: z.array(access) });

/** What may be done in one repository: the `access` claim of the registry token specification. */
export type RepositoryAccess = z.infer<typeof access>;

/** Whom a grant is for, and what it allows. */
export interface RegistryGrant {
  /** The account, or the node. Empty for a caller without credentials. */
  readonly subject: string;
  readonly access: readonly RepositoryAccess[];
}

/** Who issues grants, and for whom they are meant. */
const issuer = 'berth';
const audience = 'berth-registry';
const algorithm = 'HS256';

/** Signs and checks registry grants with a key derived from the platform secret. */
export class RegistryGrants {
  readonly #key: Buffer;

  constructor(secret: PlatformSecret) {
    this.#key = secret.keyFor('registry grants');
  }

  /** A bearer token that is good for `seconds` from `now`. */
  async issue(grant: RegistryGrant, seconds: number, now: Date): Promise<string> {
    const issuedAt = Math.floor(now.getTime() / 1000);
    return await new SignJWT({ access: [...grant.access] })
      .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
      .setSubject(grant.subject)
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + seconds)
      .sign(this.#key);
  }

  /** The grant behind a bearer token, or `undefined` if it is forged, expired or meant for somebody else. */
  async verify(token: string, now: Date): Promise<RegistryGrant | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, {
        algorithms: [algorithm],
        issuer,
        audience,
        currentDate: now,
      });
      const parsed = claims.safeParse(payload);
      return parsed.success ? { subject: parsed.data.sub, access: parsed.data.access } : undefined;
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }
}
