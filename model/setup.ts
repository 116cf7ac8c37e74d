/** The first administrator, created with a one-time set-up code of the first start, or by the configuration. */
import type { Collection, Store } from '../core/store/store.ts';
import { upsert } from '../core/store/upsert.ts';
import { hashToken } from './access-token.ts';
import { addAdministrator } from './administrators.ts';
import { ApiError } from './api-error.ts';
import { randomText } from './ids.ts';
import { setMember } from './members.ts';
import { newUser, userId, users, withPassword } from './user.ts';

/** The user who has used a set-up code. */
interface SetupClaim {
  readonly email: string;
  readonly passwordHash: string;
}

interface Setup {
  /** Always `setupId`. */
  readonly id: string;
  /** The hashes of the codes that API processes have written to their data folders. */
  readonly codeHashes: readonly string[];
  /** The account that the administrator becomes owner of. */
  readonly account: string;
  readonly claim?: SetupClaim;
}

export const setups: Collection<Setup> = { name: 'setups', indexes: {} };

const setupId = 'first-administrator';

/** Each API process with a separate data folder creates a code. More codes replace the oldest. */
const maxCodes = 16;

/** Without letters and digits that look alike. */
const codeAlphabet = 'abcdefghjkmnpqrstuvwxyz23456789';

/** 31^20 is 99 bits: too many to guess, and short enough to type. */
const codeLength = 20;

/** A new set-up code, in groups of five characters. */
export function newSetupCode(): string {
  return randomText(codeAlphabet, codeLength).replaceAll(/.{5}(?=.)/g, '$&-');
}

/** Whether there is an administrator. */
export async function hasAdministrator(store: Store): Promise<boolean> {
  const [admin] = await store.find(users, { index: 'byAdmin', equals: { isAdmin: true }, limit: 1 });
  return admin !== undefined;
}

/** Makes a code valid for creating the first administrator. */
export async function addSetupCode(store: Store, code: string, account: string): Promise<void> {
  const hash = hashCode(code);
  await upsert(store, setups, setupId, (current) => {
    if (!current) return { id: setupId, codeHashes: [hash], account };
    if (current.codeHashes.includes(hash)) return current;
    return { ...current, codeHashes: [...current.codeHashes, hash].slice(-maxCodes) };
  });
}

/**
 * Creates the first administrator, if the code is right and none has been used. Of two concurrent requests, only one can claim the
 * set-up. The administrator is written after the claim, or at the next start if the process dies in between. Throws `Forbidden`.
 */
export async function setUp(store: Store, code: string, claim: SetupClaim): Promise<void> {
  if (await hasAdministrator(store)) throw wrongCode();
  const setup = await store.update(setups, setupId, (current) => claimSetup(current, code, claim));
  if (setup?.claim?.passwordHash !== claim.passwordHash) throw wrongCode();
  await finishSetup(store);
}

/** Creates the administrator of a set-up that was claimed. Does nothing if none was, or if there is an administrator. */
export async function finishSetup(store: Store): Promise<void> {
  const setup = await store.get(setups, setupId);
  if (!setup?.claim) return;
  await ensureAdministrator(store, setup.claim, setup.account);
  await store.delete(setups, setupId);
}

/** Creates an administrator, who owns an account, or adds the rights to a user, who keeps the password if none is given. */
export async function ensureAdministrator(
  store: Store,
  { email, passwordHash }: { readonly email: string; readonly passwordHash: string | undefined },
  account: string,
): Promise<void> {
  const now = await store.now();
  const admin = await upsert(store, users, userId(email), (current) => {
    if (current?.isAdmin) return current;
    const user = { ...(current ?? newUser(email, { isAdmin: true }, now)), isAdmin: true };
    return passwordHash === undefined ? user : withPassword(user, passwordHash, now);
  });
  await addAdministrator(store, admin);
  await setMember(store, account, email, 'owner');
}

function claimSetup(setup: Setup, code: string, claim: SetupClaim): Setup {
  return setup.claim || !setup.codeHashes.includes(hashCode(code)) ? setup : { ...setup, claim };
}

function wrongCode(): ApiError {
  return new ApiError(
    'Forbidden',
    'This set-up code is wrong or was used before, look for the newest one where Berth runs',
  );
}

/** Users may type it in capitals, or with spaces. */
function hashCode(code: string): string {
  return hashToken(code.toLowerCase().replaceAll(/[\s-]/g, ''));
}
