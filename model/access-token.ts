/** Access tokens: what a person or a machine shows to act for an account. Only their hash is stored. */
import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Scope } from '../contract/scopes.ts';
import type { Collection } from '../core/store/store.ts';

export interface AccessToken {
  /** SHA-256 of the token, in hexadecimal. */
  readonly id: string;
  readonly account: string;
  /** What its owner calls it. */
  readonly name: string;
  /** The first characters, by which its owner knows it again. */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  readonly createdAt: Date;
  readonly expiresAt?: Date;
  readonly revokedAt?: Date;
}

export const accessTokens: Collection<AccessToken, 'byAccount'> = {
  name: 'access-tokens',
  indexes: { byAccount: ['account', 'createdAt'] },
};

const prefix = 'berth_pat_';
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** 62^43 is 256 bits. */
const randomLength = 43;

/** Of the random part: enough to tell one's tokens apart, no help in guessing. */
const hintLength = 4;

/** Six base62 characters hold any CRC-32. */
const checksumLength = 6;

const tokenPattern = new RegExp(`^${prefix}[A-Za-z0-9]{${randomLength + checksumLength}}$`);

/** A new access token: prefix, 256 random bits and a CRC-32, as GitHub's. It is shown once, and stored by its hash. */
export function newAccessToken(): string {
  let random = '';
  for (let i = 0; i < randomLength; i += 1) random += alphabet[randomInt(alphabet.length)];
  return `${prefix}${random}${checksum(random)}`;
}

/** What the store keeps of an access token. */
export function accessTokenDocument(
  token: string,
  about: Pick<AccessToken, 'account' | 'name' | 'scopes'>,
  now: Date,
): AccessToken {
  const hint = token.slice(0, prefix.length + hintLength);
  return { id: hashToken(token), account: about.account, name: about.name, hint, scopes: about.scopes, createdAt: now };
}

/** Whether a text can be an access token at all, decided without the store: its form and its checksum. */
export function looksLikeAccessToken(text: string): boolean {
  if (!tokenPattern.test(text)) return false;
  const random = text.slice(prefix.length, -checksumLength);
  return text.endsWith(checksum(random));
}

/** The hash under which a token, of whatever kind, is stored. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Whether a token may be used now. */
export function isUsable(token: AccessToken, now: Date): boolean {
  return token.revokedAt === undefined && (token.expiresAt === undefined || now < token.expiresAt);
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
