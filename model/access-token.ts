/** Access tokens, which users and programs send to act for an account. Only their hash is stored. */
import { hash } from 'node:crypto';
import { randomText } from './ids.ts';
import { crc32 } from 'node:zlib';
import type { Scope } from '../contract/scopes.ts';
import type { Collection } from '../core/store/store.ts';
import { ApiError } from './api-error.ts';

/**
 * `access`: created by a user, for one account. `deploy`: issued for the ID token of a deployment. `cli`: the log-in of a command
 * line. `session`: the log-in of a browser, valid in its cookie only.
 */
export type TokenKind = 'access' | 'deploy' | 'cli' | 'session';

export interface AccessToken {
  /** SHA-256 of the secret, in hexadecimal. */
  readonly id: string;
  /** Absent: `access`. */
  readonly kind?: TokenKind;
  /** The only account that it is valid for. Absent: all accounts of its user. */
  readonly account?: string;
  /** The user that it acts for: it never allows more than this user may do. Absent: it belongs to the account itself. */
  readonly user?: string;
  /** Of a log-in: when the password was set with which its user logged in. */
  readonly passwordSetAt?: Date;
  readonly name: string;
  /** The first characters of the secret, by which its owner recognizes it. */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  /** The only services that it is valid for, by their names. Absent: all. */
  readonly services?: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
  /** When it was last used, exact to a minute. */
  readonly lastUsedAt?: Date;
  /** When it expires or was revoked, whichever is earlier. It is deleted some time after. */
  readonly endsAt?: Date;
}

export const accessTokens: Collection<
  AccessToken,
  'byAccount' | 'byAccountAndUser' | 'byIdInAccount' | 'byIdOfUser' | 'byEnd'
> = {
  name: 'access-tokens',
  indexes: {
    byAccount: ['account', 'createdAt'],
    byAccountAndUser: ['account', 'user', 'createdAt'],
    byIdInAccount: ['account'],
    byIdOfUser: ['user'],
    byEnd: ['endsAt'],
  },
};

/** Prefixes, by which scanners for leaked secrets recognize a token. */
const prefixes = {
  access: 'berth_pat_',
  deploy: 'berth_dep_',
  cli: 'berth_cli_',
  session: 'berth_ses_',
} as const satisfies Record<TokenKind, string>;

const prefixLength = prefixes.access.length;

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** 62^43 is 256 bits. */
const randomLength = 43;

/** Characters of the random part: enough to distinguish the tokens of an account, too few to help guessing. */
const hintLength = 4;

/** Six base62 characters hold any CRC-32. */
const checksumLength = 6;

const secretPattern = new RegExp(
  `^(?:${Object.values(prefixes).join('|')})[A-Za-z0-9]{${randomLength + checksumLength}}$`,
);

/** The longest token: an account's name, a dot, and a secret. */
const maxTokenLength = 63 + 1 + prefixLength + randomLength + checksumLength;

/** The precision of the time of the last use: a token in constant use costs one write a minute. */
const lastUseEveryMs = 60_000;

/** The start of a token's hash that clients see as its ID: 80 bits, unique among the tokens of an account. */
const publicIdLength = 20;

const publicIdPattern = /^[0-9a-f]{20}$/;

/** The secret of a new token: prefix, 256 random bits and a CRC-32, as in tokens of GitHub. It is shown once, and stored by its hash. */
export function newSecret(kind: TokenKind): string {
  const random = randomText(alphabet, randomLength);
  return `${prefixes[kind]}${random}${checksum(random)}`;
}

/** A token as its owner gets it: `<account>.<secret>`, because existing tools expect a dot; without an account, the secret alone. */
export function tokenText(secret: string, account: string | undefined): string {
  return account === undefined ? secret : `${account}.${secret}`;
}

/** The parts of a token that a client sends. */
export interface SentToken {
  /** The account in front of the secret, if any. The token must belong to it. */
  readonly account?: string;
  readonly secret: string;
}

/** The parts of a token, or `undefined` if the text is not a token, by its form and checksum. Reads no store. */
export function parseToken(text: string): SentToken | undefined {
  if (text.length > maxTokenLength) return undefined;
  const dotAt = text.lastIndexOf('.');
  const secret = text.slice(dotAt + 1);
  if (!isSecret(secret)) return undefined;
  return dotAt < 0 ? { secret } : { account: text.slice(0, dotAt), secret };
}

/** The secret in a token that this platform has issued. */
export function secretOf(token: string): string {
  return token.slice(token.lastIndexOf('.') + 1);
}

function isSecret(text: string): boolean {
  return secretPattern.test(text) && text.endsWith(checksum(text.slice(prefixLength, -checksumLength)));
}

type TokenDetails = Pick<AccessToken, 'name' | 'scopes'> &
  Partial<Pick<AccessToken, 'kind' | 'account' | 'user' | 'passwordSetAt' | 'services' | 'expiresAt'>>;

/** The document of a token. */
export function accessTokenDocument(token: string, details: TokenDetails, now: Date): AccessToken {
  const secret = secretOf(token);
  const { name, scopes, kind, account, user, passwordSetAt, services, expiresAt } = details;
  return {
    id: hashToken(secret),
    ...(kind && { kind }),
    ...(account !== undefined && { account }),
    ...(user !== undefined && { user }),
    ...(passwordSetAt && { passwordSetAt }),
    name,
    hint: secret.slice(0, prefixLength + hintLength),
    scopes,
    ...(services && { services }),
    createdAt: now,
    ...(expiresAt && { expiresAt, endsAt: expiresAt }),
  };
}

/** The hash under which the store has a token, a code or another secret text. */
export function hashToken(token: string): string {
  return hash('sha256', token);
}

/** The ID of a token for clients. */
export function publicTokenId(token: Pick<AccessToken, 'id'>): string {
  return token.id.slice(0, publicIdLength);
}

/** The IDs in the store that begin with an ID for clients, as a range; `undefined` if the text is not such an ID. */
export function idsFrom(publicId: string): { readonly from: string; readonly before: string } | undefined {
  // `g` comes after all hexadecimal digits.
  return publicIdPattern.test(publicId) ? { from: publicId, before: `${publicId}g` } : undefined;
}

/** Whether a token may be used now. */
export function isUsable(token: AccessToken, now: Date): boolean {
  return token.revokedAt === undefined && (token.expiresAt === undefined || now < token.expiresAt);
}

/**
 * Rejects a new token that would allow more, or last longer, than the token that creates it. A log-in may create tokens that outlive
 * it. Throws `Forbidden`.
 */
export function assertMayIssue(
  creator: { readonly kind: TokenKind; readonly scopes: readonly Scope[]; readonly expiresAt?: Date },
  wanted: { readonly scopes: readonly Scope[]; readonly expiresAt: Date | undefined },
): void {
  const extra = wanted.scopes.find((scope) => !creator.scopes.includes(scope));
  if (extra) throw new ApiError('Forbidden', `scopes: The caller lacks the scope "${extra}", and cannot grant it`);
  if (creator.kind !== 'access' || !creator.expiresAt) return;
  if (!wanted.expiresAt || wanted.expiresAt > creator.expiresAt) {
    const latest = creator.expiresAt.toISOString();
    throw new ApiError(
      'Forbidden',
      `expires_in_seconds: The caller's own token expires at ${latest}, use a shorter time`,
    );
  }
}

/** Revokes a token. Unchanged if it was revoked before. */
export function revoke(token: AccessToken, now: Date): AccessToken {
  if (token.revokedAt) return token;
  return { ...token, revokedAt: now, endsAt: token.endsAt && token.endsAt < now ? token.endsAt : now };
}

/** Records that a token was used, unless a use within the last minute is recorded. */
export function recordUse(token: AccessToken, now: Date): AccessToken {
  const isRecent = token.lastUsedAt !== undefined && now.getTime() - token.lastUsedAt.getTime() < lastUseEveryMs;
  return isRecent ? token : { ...token, lastUsedAt: now };
}

function checksum(random: string): string {
  let rest = crc32(random);
  let text = '';
  for (let i = 0; i < checksumLength; i += 1) {
    text = alphabet[rest % alphabet.length] + text;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}
