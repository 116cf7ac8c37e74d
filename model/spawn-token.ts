/** Spawn tokens: with one, a client that has no access token can spawn backends of one service. Only their hash is stored. */
import { randomBytes } from 'node:crypto';
import type { EarliestSpawnRequest } from '../contract/v1.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import { SecretBox } from '../core/secret/secret-box.ts';
import type { Collection } from '../core/store/store.ts';
import { hashToken } from './access-token.ts';

export interface SpawnToken {
  /** SHA-256 of the token, in hexadecimal. */
  readonly id: string;
  readonly account: string;
  /** The service's name within its account. */
  readonly service: string;
  /** The options of all its spawns, encrypted, since variables may be secrets. */
  readonly sealedOptions: string;
  readonly createdAt: Date;
}

export const spawnTokens: Collection<SpawnToken, 'byService'> = {
  name: 'spawn-tokens',
  indexes: { byService: ['account', 'service', 'createdAt'] },
};

const prefix = 'berth_spawn_';

const pattern = /^berth_spawn_[A-Za-z0-9_-]{43}$/;

/** A new spawn token: prefix and 256 random bits. It is shown once, and stored by its hash. */
export function newSpawnToken(): string {
  return prefix + randomBytes(32).toString('base64url');
}

/** Whether a text can be a spawn token at all, decided without the store. */
export function looksLikeSpawnToken(text: string): boolean {
  return pattern.test(text);
}

/** Encrypts the options of spawn tokens for the store. */
export function spawnOptionsBox(secret: PlatformSecret): SecretBox {
  return new SecretBox(secret.keyFor('spawn token options'));
}

/** The document of a spawn token. */
export function spawnTokenDocument(
  token: string,
  about: { readonly account: string; readonly service: string; readonly options: EarliestSpawnRequest },
  { now, box }: { readonly now: Date; readonly box: SecretBox },
): SpawnToken {
  const { account, service, options } = about;
  const id = hashToken(token);
  return { id, account, service, sealedOptions: box.seal(JSON.stringify(options), id), createdAt: now };
}

/** The options of a token's spawns. */
export function spawnOptionsOf({ id, sealedOptions }: SpawnToken, box: SecretBox): EarliestSpawnRequest {
  return JSON.parse(box.open(sealedOptions, id)) as EarliestSpawnRequest;
}
