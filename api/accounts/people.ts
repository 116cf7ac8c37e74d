/** Users, accounts and their members. */
import { randomBytes } from 'node:crypto';
import { endpoints } from '../../contract/endpoints.ts';
import type { UserObject } from '../../contract/people.ts';
import { insertIfAbsent } from '../../core/store/upsert.ts';
import { accounts, withoutMember } from '../../model/account.ts';
import { addAdministrator, removeAdministrator } from '../../model/administrators.ts';
import { ApiError } from '../../model/api-error.ts';
import { setMember } from '../../model/members.ts';
import { invite, newUser, noUser, userId, users, withDisabled } from '../../model/user.ts';
import type { User } from '../../model/user.ts';
import { ownAccount } from '../access.ts';
import { answer } from '../app.ts';
import type { Api } from '../dependencies.ts';
import { findPage } from '../pages.ts';

const userEndpoints = [
  answer(endpoints.createUser, async (api, { body }) => {
    const user = newUser(body.user_email, { isAdmin: body.is_admin ?? false }, await api.store.now());
    if (!(await insertIfAbsent(api.store, users, user))) {
      throw new ApiError('UserExists', `There is a user "${user.id}" already`);
    }
    return await inviteUser(api, user.id);
  }),
  answer(endpoints.inviteUser, async (api, { parameters }) => await inviteUser(api, userId(parameters.user_email))),
  answer(endpoints.listUsers, async (api, { query }) => {
    const list = { collection: users, query: { index: 'byCreation' }, by: 'createdAt', type: 'time' } as const;
    const { items, next } = await findPage(api.store, list, query);
    return { users: items.map(presentUser), ...next };
  }),
  answer(endpoints.updateUser, async (api, { parameters, body }) => {
    const id = userId(parameters.user_email);
    if (body.is_admin === false || body.disabled === true) await removeAdministrator(api.store, id);
    const now = await api.store.now();
    const user = await api.store.update(users, id, (current) => {
      const changed = body.disabled === undefined ? current : withDisabled(current, body.disabled, now);
      return body.is_admin === undefined ? changed : { ...changed, isAdmin: body.is_admin };
    });
    if (!user) throw noUser(id);
    await addAdministrator(api.store, user);
    await api.tokens.publishChange();
  }),
];

const memberEndpoints = [
  answer(endpoints.createAccount, async (api, { body, caller }) => {
    const { name } = body;
    const owner = userId(body.owner_email ?? caller.permissions.user ?? '');
    if (!(await api.store.get(users, owner))) throw noUser(owner);
    const account = { id: name, createdAt: await api.store.now() };
    if (!(await insertIfAbsent(api.store, accounts, account))) {
      throw new ApiError('AccountExists', `There is an account "${name}" already`);
    }
    // If the process crashes before this, an administrator, who has access to every account, adds the owner.
    await setMember(api.store, name, owner, 'owner');
    await api.tokens.publishChange();
  }),
  answer(endpoints.listAccounts, async (api, { query, caller }) => {
    const { permissions } = caller;
    if (!permissions.isAdmin) {
      return { accounts: permissions.accounts.map(({ account, role }) => ({ name: account, role })) };
    }
    const list = { collection: accounts, query: { index: 'byCreation' }, by: 'createdAt', type: 'time' } as const;
    const { items, next } = await findPage(api.store, list, query);
    return { accounts: items.map(({ id }) => ({ name: id, role: 'owner' })), ...next };
  }),
  answer(endpoints.listMembers, async (api, { parameters, caller }) => {
    ownAccount(caller, parameters.account);
    const { members = [] } = (await api.store.get(accounts, parameters.account)) ?? {};
    return {
      members: members.map(({ user, role, addedAt }) => ({ user_email: user, role, added_at: addedAt.toISOString() })),
    };
  }),
  answer(endpoints.setMember, async (api, { parameters, body, caller }) => {
    ownAccount(caller, parameters.account);
    await setMember(api.store, parameters.account, body.user_email, body.role);
    await api.tokens.publishChange();
  }),
  answer(endpoints.removeMember, async (api, { parameters, caller }) => {
    const { account } = ownAccount(caller, parameters.account);
    await api.store.update(accounts, account, (current) => withoutMember(current, userId(parameters.user_email)));
    await api.tokens.publishChange();
  }),
];

export const peopleEndpoints = [...userEndpoints, ...memberEndpoints];

/** Creates a new invitation code for a user. The user's log-ins last until the password is set. Throws `UserNotFound`. */
async function inviteUser(api: Api, id: string) {
  const code = randomBytes(32).toString('base64url');
  const now = await api.store.now();
  const user = await api.store.update(users, id, (current) => invite(current, code, now));
  if (!user?.invitation) throw noUser(id);
  // After the `#`, so that no server logs the code.
  const url = `${api.urls.api}/invitation#${new URLSearchParams({ email: id, code }).toString()}`;
  return { user_email: id, url, expires_at: user.invitation.expiresAt.toISOString() };
}

function presentUser(user: User): UserObject {
  return {
    user_email: user.id,
    is_admin: user.isAdmin,
    disabled: user.disabledAt !== undefined,
    has_password: user.passwordHash !== undefined,
    created_at: user.createdAt.toISOString(),
  };
}
