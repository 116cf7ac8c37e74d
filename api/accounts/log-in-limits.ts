/** Limits how many wrong passwords and codes clients may send, across processes. */
import type { IncomingMessage } from 'node:http';
import { clientAddress, networkOf } from '../../core/http/client-address.ts';
import { ApiError } from '../../model/api-error.ts';
import { countAttempts, uncountAttempts } from '../../model/attempts.ts';
import type { AttemptLimit, CountedAttempt } from '../../model/attempts.ts';
import type { Api } from '../dependencies.ts';
import { knownDevice } from './known-device.ts';

/** A person who mistypes a password a few times is not kept waiting; 60 guesses an hour find no password of 12 characters. */
const fewGuesses: AttemptLimit = { capacity: 10, seconds: 600 };

/** An office behind one address. */
const perNetwork: AttemptLimit = { capacity: 50, seconds: 600 };

/** Guesses of a password from many networks. Once the limit is reached, the user can log in only with known browsers. */
const perUser: AttemptLimit = { capacity: 100, seconds: 3600 };

/** Four seconds of checks. Known browsers have as many more, so that a flood of guesses leaves capacity for them. */
const capacity = 50;
const capacityForKnown = 100;

/** The maximum length of an e-mail address: longer texts name no user. */
const maxKeyLength = 254;

/**
 * Runs the check of a user's password. A browser in which the user has logged in before has its own limit, so that guesses of other
 * clients do not lock the user out. Throws `TooManyRequests`, and what the check throws.
 */
export async function limitedForUser<Result>(
  api: Api,
  request: IncomingMessage,
  user: string,
  check: () => Promise<Result>,
): Promise<Result> {
  const device = knownDevice(api, request, user);
  if (device !== undefined) {
    const ofDevice = { id: `log-in device ${device}`, limit: fewGuesses };
    return await api.passwordChecks.run(capacityForKnown, async () => await limited(api, [ofDevice], check));
  }
  const attempts = [...ofNetwork(api, request, user), { id: `log-in of ${keyOf(user)}`, limit: perUser }];
  return await api.passwordChecks.run(capacity, async () => await limited(api, attempts, check));
}

/** Runs the check of a code that no client can guess: the limits by network bound the work of checking. Throws as `limitedForUser`. */
export async function limitedByNetwork<Result>(
  api: Api,
  request: IncomingMessage,
  subject: string,
  check: () => Promise<Result>,
): Promise<Result> {
  const attempts = ofNetwork(api, request, subject);
  return await api.passwordChecks.run(capacity, async () => await limited(api, attempts, check));
}

function ofNetwork(api: Api, request: IncomingMessage, subject: string): CountedAttempt[] {
  const network = networkOf(clientAddress(request, api.behindLoadBalancer));
  return [
    { id: `log-in ${network} ${keyOf(subject)}`, limit: fewGuesses },
    { id: `log-in from ${network}`, limit: perNetwork },
  ];
}

function keyOf(subject: string): string {
  return subject.slice(0, maxKeyLength);
}

/** Counts the attempt before the check, so that concurrent requests cannot exceed the limit, and uncounts it if the check succeeds. */
async function limited<Result>(
  { store }: Api,
  attempts: readonly CountedAttempt[],
  check: () => Promise<Result>,
): Promise<Result> {
  const now = await store.now();
  const retryAfterSeconds = await countAttempts(store, attempts, now);
  if (retryAfterSeconds > 0) {
    throw new ApiError('TooManyRequests', `Too many log-ins have failed, wait ${retryAfterSeconds} s`, {
      retryAfterSeconds,
    });
  }
  const result = await check();
  await uncountAttempts(store, attempts, now);
  return result;
}
