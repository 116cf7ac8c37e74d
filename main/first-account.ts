/** The first account: made when the store has none, with an access token that may do everything in it. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { upsert } from '../core/store/upsert.ts';
import type { Store } from '../core/store/store.ts';
import { accessRights, accessTokens, newAccessToken } from '../model/access-token.ts';
import { accounts } from '../model/account.ts';
import { writeDurably } from './data-folder.ts';

export interface FirstAccount {
  readonly name: string;
  /** A file, readable by its owner only, that holds the access token and nothing else. */
  readonly tokenFile: string;
  /** The access token, if it was made just now: it is shown this once. */
  readonly newToken?: string;
}

/**
 * Makes the account and its access token unless they are there. The token's document is written before its file: a crash in
 * between leaves a token that nobody knows, and the next start makes another.
 */
export async function ensureFirstAccount(store: Store, name: string, folder: string): Promise<FirstAccount> {
  const tokenFile = join(folder, 'token');
  const now = await store.now();
  await upsert(store, accounts, name, (current) => current ?? { id: name, createdAt: now });
  if (await exists(tokenFile)) return { name, tokenFile };
  const { token, document } = newAccessToken({ account: name, name: 'first token', rights: accessRights }, now);
  await store.insert(accessTokens, document);
  await writeDurably(tokenFile, token);
  return { name, tokenFile, newToken: token };
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
