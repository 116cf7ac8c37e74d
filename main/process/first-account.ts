/** The first account: created at the first start, with an access token that has all scopes. */
import { join } from 'node:path';
import { writeDurably } from '../../core/files/durable.ts';
import { upsert } from '../../core/store/upsert.ts';
import type { Store } from '../../core/store/store.ts';
import { scopes } from '../../contract/scopes.ts';
import { accessTokens, accessTokenDocument, newSecret, tokenText } from '../../model/access-token.ts';
import { accounts } from '../../model/account.ts';
import { textOf } from './data-folder.ts';

export interface FirstAccount {
  readonly name: string;
  /** A file that contains only the access token, and that only its owner can read. */
  readonly tokenFile: string;
  /** The access token, if it was created by this start. It is shown only once. */
  readonly newToken?: string;
}

/**
 * Creates the account, and an access token for it unless it has one. The file is written before the document: after a crash
 * between the two writes, the next start finds the file and writes the document.
 */
export async function ensureFirstAccount(store: Store, name: string, folder: string): Promise<FirstAccount> {
  const tokenFile = join(folder, 'token');
  const now = await store.now();
  await upsert(store, accounts, name, (current) => current ?? { id: name, createdAt: now });
  const kept = await textOf(tokenFile);
  if (kept === undefined && (await hasToken(store, name))) return { name, tokenFile };
  const token = kept ?? tokenText(newSecret('access'), name);
  if (kept === undefined) await writeDurably(tokenFile, token);
  const document = accessTokenDocument(token, { account: name, name: 'first token', scopes }, now);
  // Before version 0.1.0, access tokens had other fields instead of scopes.
  await upsert(store, accessTokens, document.id, (current) => (current && 'scopes' in current ? current : document));
  return { name, tokenFile, ...(kept === undefined && { newToken: token }) };
}

async function hasToken(store: Store, account: string): Promise<boolean> {
  const found = await store.find(accessTokens, { index: 'byAccount', equals: { account }, limit: 1 });
  return found.length > 0;
}
