/** Registry grants: short-lived bearer tokens that list the rights of their holder in repositories. */
import { createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
// The main module of 'jose' would load the whole library.
import { JOSEError, JWKSNoMatchingKey } from 'jose/errors';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';

const repositoryAccess = z.strictObject({
  type: z.literal('repository'),
  name: z.string(),
  actions: z.array(z.enum(['pull', 'push', 'delete'])),
});

/** The access that clients request to list repositories: `registry:catalog:*`. */
const catalogAccess = z.strictObject({
  type: z.literal('registry'),
  name: z.literal('catalog'),
  actions: z.tuple([z.literal('*')]),
});

const claims = z.object({
  sub: z.string(),
  exp: z.int(),
  access: z.array(z.discriminatedUnion('type', [repositoryAccess, catalogAccess])),
  mounts_own: z.literal(true).optional(),
  /** The ID of an access token in the store: a hash, which says nothing about the token. */
  tok: z.string().optional(),
});

/** What may be done in one repository: the `access` claim of the registry token specification. */
export type RepositoryAccess = z.infer<typeof repositoryAccess>;

/** The right to list the repositories of the subject. */
export type CatalogAccess = z.infer<typeof catalogAccess>;

/** The subject of a grant and its rights. */
export interface RegistryGrant {
  /** The account, or the node. Empty for a caller without credentials. */
  readonly subject: string;
  readonly access: readonly (RepositoryAccess | CatalogAccess)[];
  /** The ID of the access token by which it was issued: when that is revoked, the grant ends as well. Absent for nodes. */
  readonly token?: string;
  /**
   * Whether blobs may be mounted from all repositories of the subject's account, since its access token may read them. Many
   * clients do not name the source when they request a grant. It does not allow pulls from repositories that `access` does not name.
   */
  readonly mountsOwn?: true;
}

/** Issuer and audience of grants. */
const issuer = 'berth';
const audience = 'berth-registry';

/** The only allowed header: keys inside a token, or at a URL that it names, are never used. */
const header = z.strictObject({
  alg: z.literal('HS256'),
  typ: z.literal('JWT'),
  kid: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
});

const dayMs = 24 * 60 * 60 * 1000;

/** A node that fetches a large image keeps its grant for up to a day, and a minute to begin. */
const maxGrantSeconds = 25 * 60 * 60;

/** How many days after its own day a key is still accepted: as long as grants of its last minute are valid. */
const keyOutlivesDays = Math.ceil((maxGrantSeconds * 1000) / dayMs);

/** How many keys are accepted at a time, including tomorrow's, since the clocks of two processes differ. */
const acceptedKeys = keyOutlivesDays + 2;

/** The size of the cache of checked grants. Each request is checked, and a client sends the same grant hundreds of times. */
const maxKnownCharacters = 8 * 1024 * 1024;

interface KnownGrant {
  readonly grant: RegistryGrant;
  readonly expiresAtMs: number;
}

/**
 * Signs and checks registry grants. Each UTC day has its own key, derived from the platform secret: all processes have it without
 * communicating, and a leaked key is useless a few days later.
 */
export class RegistryGrants {
  readonly #secret: PlatformSecret;
  /** By day, only for days whose keys are accepted. */
  readonly #keys = new LRUCache<string, KeyObject>({ max: acceptedKeys });
  readonly #known = new LRUCache<string, KnownGrant>({
    maxSize: maxKnownCharacters,
    sizeCalculation: (_known, token) => token.length,
  });

  constructor(secret: PlatformSecret) {
    this.#secret = secret;
  }

  /** Returns a bearer token that is valid for `seconds` from `now`. Throws a `RangeError` if its key would be rejected before. */
  async issue(grant: RegistryGrant, seconds: number, now: Date): Promise<string> {
    if (seconds > maxGrantSeconds) throw new RangeError(`A grant lives for at most ${maxGrantSeconds} seconds`);
    const issuedAt = Math.floor(now.getTime() / 1000);
    const kid = now.toISOString().slice(0, 10);
    return await new SignJWT({
      access: [...grant.access],
      ...(grant.mountsOwn && { mounts_own: true }),
      ...(grant.token !== undefined && { tok: grant.token }),
    })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid })
      .setSubject(grant.subject)
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + seconds)
      .sign(this.#keyOf(kid));
  }

  /** The grant behind a bearer token, or `undefined` if it is forged, expired or for another audience. */
  async verify(token: string, now: Date): Promise<RegistryGrant | undefined> {
    const known = this.#known.get(token);
    if (known) return now.getTime() < known.expiresAtMs ? known.grant : undefined;
    const verified = await this.#check(token, now);
    if (verified) this.#known.set(token, verified);
    return verified?.grant;
  }

  async #check(token: string, now: Date): Promise<KnownGrant | undefined> {
    try {
      const options = { algorithms: ['HS256'], issuer, audience, currentDate: now };
      const { payload, protectedHeader } = await jwtVerify(token, (given: object) => this.#keyFor(given, now), options);
      const parsed = claims.safeParse(payload);
      if (!parsed.success) return undefined;
      const { sub, access, exp, mounts_own: mountsOwn, tok: issuedBy } = parsed.data;
      const expiresAtMs = Math.min(exp * 1000, lifeOf(protectedHeader.kid).endMs);
      const grant = {
        subject: sub,
        access,
        ...(issuedBy !== undefined && { token: issuedBy }),
        ...(mountsOwn && { mountsOwn }),
      };
      return { grant, expiresAtMs };
    } catch (error) {
      if (error instanceof JOSEError) return undefined;
      throw error;
    }
  }

  #keyFor(given: object, now: Date): KeyObject {
    const parsed = header.safeParse(given);
    if (!parsed.success) throw new JWKSNoMatchingKey();
    const { beginMs, endMs } = lifeOf(parsed.data.kid);
    // For a text that is not a date, both are NaN.
    if (!(beginMs <= now.getTime() && now.getTime() < endMs)) throw new JWKSNoMatchingKey();
    return this.#keyOf(parsed.data.kid);
  }

  #keyOf(day: string): KeyObject {
    let key = this.#keys.get(day);
    if (!key) this.#keys.set(day, (key = createSecretKey(this.#secret.keyFor(`registry grants ${day}`))));
    return key;
  }
}

/** The time during which the key of a UTC day is accepted. */
function lifeOf(day: string | undefined): { beginMs: number; endMs: number } {
  const dayBeginsMs = Date.parse(`${day}T00:00:00.000Z`);
  return { beginMs: dayBeginsMs - dayMs, endMs: dayBeginsMs + (1 + keyOutlivesDays) * dayMs };
}
