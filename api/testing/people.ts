/** Users in tests, with passwords and log-ins. */
import { upsert } from '../../core/store/upsert.ts';
import type { Role } from '../../contract/roles.ts';
import { accounts } from '../../model/account.ts';
import { setMember } from '../../model/members.ts';
import { ensureAdministrator } from '../../model/setup.ts';
import { newUser, users, withPassword } from '../../model/user.ts';
import type { Reply, TestApi } from './test-api.ts';

/** The password of every user. */
export const password = 'correct horse battery';

/** Its hash with the lowest costs that argon2 has: with those of the platform, each log-in takes 150 ms of a core. */
const passwordHash = '$argon2id$v=19$m=8,t=1,p=1$c2FsdCBvZiB0aGUgdGVzdHM$wVfxG29B162pw19xc1+DA9BDQHvWRXrXEvemoqx0xrY';

/** Adds a user with a role in an account, which is created if it does not exist. */
export async function addUser({ store }: TestApi, email: string, account: string, role: Role): Promise<void> {
  const now = new Date();
  await upsert(store, accounts, account, (current) => current ?? { id: account, createdAt: now });
  await store.insert(users, withPassword(newUser(email, { isAdmin: false }, now), passwordHash, now));
  await setMember(store, account, email, role);
}

export async function addAdmin({ store }: TestApi, email: string, account: string): Promise<void> {
  await ensureAdministrator(store, { email, passwordHash }, account);
}

/** Headers that browsers send with the requests of our own pages. */
export const ownPage = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };

export interface Browser {
  readonly cookie: string;
  readonly get: (path: string, headers?: Record<string, string>) => Promise<Reply>;
  readonly post: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>;
}

/** Logs a user in, in a new browser. */
export async function logIn(api: TestApi, email: string, as = password): Promise<Browser> {
  const body = JSON.stringify({ user_email: email, password: as });
  const reply = await api.call('POST', '/v2/session', { headers: ownPage, body });
  const cookie = reply.headers.get('set-cookie')?.split(';')[0];
  if (reply.status !== 200 || cookie === undefined) throw new Error(`The log-in failed: ${JSON.stringify(reply.body)}`);
  return {
    cookie,
    get: async (path, headers = {}) => await api.call('GET', path, { headers: { ...ownPage, cookie, ...headers } }),
    post: async (path, sent, headers = {}) =>
      await api.call('POST', path, {
        headers: { ...ownPage, cookie, ...headers },
        ...(sent !== undefined && { body: JSON.stringify(sent) }),
      }),
  };
}
