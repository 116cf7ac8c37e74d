/** Log-ins of command lines: the program begins one, a user confirms it in a browser, and the code shown there completes it. */
import { randomBytes, randomInt } from 'node:crypto';
import type { Collection } from '../core/store/store.ts';
import { hashToken } from './access-token.ts';
import { ApiError } from './api-error.ts';

/** Who confirmed a log-in: a user, in a session that was begun with the password that was set at a time. */
interface Confirmation {
  readonly user: string;
  readonly passwordSetAt?: Date;
}

export interface CliLogin {
  /** The hash of the token in its URL. */
  readonly id: string;
  /** A description of the program, for the user who confirms the log-in. */
  readonly program: string;
  readonly address: string;
  readonly confirmed?: Confirmation & { readonly codeHash: string };
  readonly attemptsLeft: number;
  readonly isComplete: boolean;
  readonly endsAt: Date;
}

export const cliLogins: Collection<CliLogin, 'byEnd'> = { name: 'cli-logins', indexes: { byEnd: ['endsAt'] } };

/** Long enough to find a password and to log in. */
const cliLoginMs = 10 * 60 * 1000;

/** With six digits, an attacker who sent the link to a user guesses the code in one of 200,000 cases. */
const attempts = 5;

const tokenPattern = /^[\w-]{43}$/;

export function newCliLoginToken(): string {
  return randomBytes(32).toString('base64url');
}

/** The ID in the store, or `undefined` for a text that cannot be the token of a log-in. */
export function cliLoginId(token: string): string | undefined {
  return tokenPattern.test(token) ? hashToken(token) : undefined;
}

export function newCliLogin(id: string, from: Pick<CliLogin, 'program' | 'address'>, now: Date): CliLogin {
  const endsAt = new Date(now.getTime() + cliLoginMs);
  return { id, program: from.program, address: from.address, attemptsLeft: attempts, isComplete: false, endsAt };
}

/** Six digits, which a user types. */
export function newCliLoginCode(): string {
  return String(randomInt(1_000_000)).padStart(6, '0');
}

/** Confirms a log-in as a user. A second confirmation replaces the first, and its code. Throws `CliLoginNotFound`. */
export function confirm(login: CliLogin, by: Confirmation, code: string, now: Date): CliLogin {
  assertOpen(login, now);
  return { ...login, confirmed: { ...by, codeHash: hashCode(login, code) } };
}

/** Completes a log-in if the code is right, else counts the attempt. Throws `CliLoginNotFound` when it is not open. */
export function complete(login: CliLogin, code: string, now: Date): CliLogin {
  assertOpen(login, now);
  const isRight = login.confirmed?.codeHash === hashCode(login, code);
  return isRight ? { ...login, isComplete: true } : { ...login, attemptsLeft: login.attemptsLeft - 1 };
}

/** Whether a log-in waits to be confirmed or completed. */
export function isOpen({ isComplete, attemptsLeft, endsAt }: CliLogin, now: Date): boolean {
  return !isComplete && attemptsLeft > 0 && now < endsAt;
}

export function noCliLogin(): ApiError {
  return new ApiError(
    'CliLoginNotFound',
    'This log-in was completed or has expired, begin another in the command line',
  );
}

function assertOpen(login: CliLogin, now: Date): void {
  if (!isOpen(login, now)) throw noCliLogin();
}

function hashCode({ id }: CliLogin, code: string): string {
  return hashToken(`${id} ${code}`);
}
