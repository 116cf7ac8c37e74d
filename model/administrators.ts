/**
 * The administrators who can log in, as one document: of two that remove each other at the same time, it lets one do so. A user is
 * removed from it before the rights go, and added when they are there. After a crash in between, the document lacks an administrator,
 * which a repeated change of that user repairs.
 */
import type { Collection, Store } from '../core/store/store.ts';
import { insertIfAbsent } from '../core/store/upsert.ts';
import { ApiError } from './api-error.ts';
import { users } from './user.ts';
import type { User } from './user.ts';

interface Administrators {
  /** There is one. */
  readonly id: string;
  /** IDs of users. */
  readonly users: readonly string[];
}

export const administrators: Collection<Administrators> = { name: 'administrators', indexes: {} };

const documentId = 'administrators';

/** Adds a user, if it is an administrator who can log in. To be called after a change that may have made it one. */
export async function noteAdministrator(store: Store, user: User): Promise<void> {
  if (!isAble(user)) return;
  await change(store, ({ users: listed, ...document }) =>
    listed.includes(user.id) ? { ...document, users: listed } : { ...document, users: [...listed, user.id] },
  );
}

/** Removes a user, before it stops being an administrator who can log in. Throws `LastAdministrator`. */
export async function dismissAdministrator(store: Store, user: string): Promise<void> {
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
  const first = { id: documentId, users: admins.filter(isAble).map(({ id }) => id) };
  await insertIfAbsent(store, administrators, first);
  await store.update(administrators, documentId, by);
}

function isAble({ isAdmin, passwordHash, disabledAt }: User): boolean {
  return isAdmin && passwordHash !== undefined && !disabledAt;
}
