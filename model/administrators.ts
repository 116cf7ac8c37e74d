/**
 * The administrators who can log in, in one document: of two that remove each other at the same time, only one succeeds. A user is
 * removed from it before losing the rights, and added after getting them. After a crash in between, the document lacks an administrator,
 * which a repeated change of that user repairs.
 */
import type { Collection, Store } from '../core/store/store.ts';
import { insertIfAbsent } from '../core/store/upsert.ts';
import { ApiError } from './api-error.ts';
import { users } from './user.ts';
import type { User } from './user.ts';

interface Administrators {
  /** Always `documentId`. */
  readonly id: string;
  /** IDs of users. */
  readonly users: readonly string[];
}

export const administrators: Collection<Administrators> = { name: 'administrators', indexes: {} };

const documentId = 'administrators';

/** Adds a user who is an administrator and can log in. Call it after each change that may have made the user one. */
export async function addAdministrator(store: Store, user: User): Promise<void> {
  if (!canAdministrate(user)) return;
  await change(store, ({ users: listed, ...document }) =>
    listed.includes(user.id) ? { ...document, users: listed } : { ...document, users: [...listed, user.id] },
  );
}

/** Removes a user. Call it before the user loses the rights or the log-in. Throws `LastAdministrator`. */
export async function removeAdministrator(store: Store, user: string): Promise<void> {
  await change(store, (current) => {
    if (!current.users.includes(user)) return current;
    const left = current.users.filter((each) => each !== user);
    if (left.length > 0) return { ...current, users: left };
    throw new ApiError(
      'LastAdministrator',
      'The platform needs an administrator who can log in, make another user administrator first',
    );
  });
}

async function change(store: Store, by: (current: Administrators) => Administrators): Promise<void> {
  if (await store.update(administrators, documentId, by)) return;
  const admins = await store.find(users, { index: 'byAdmin', equals: { isAdmin: true } });
  const first = { id: documentId, users: admins.filter(canAdministrate).map(({ id }) => id) };
  await insertIfAbsent(store, administrators, first);
  await store.update(administrators, documentId, by);
}

function canAdministrate({ isAdmin, passwordHash, disabledAt }: User): boolean {
  return isAdmin && passwordHash !== undefined && !disabledAt;
}
