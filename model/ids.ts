import { randomInt } from 'node:crypto';

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** 36^12 is 62 bits: enough for a readiness page that needs only the ID. */
const randomLength = 12;

/** How many characters of a backend ID are its time. 36^6 seconds are 69 years. Then times repeat, which is harmless: no code reads them. */
export const idTimeLength = 6;

/**
 * A new backend ID. It is never reused: it has 62 random bits, and the store rejects a duplicate. It begins with the time in seconds, so
 * that the documents and routes of new backends are next to each other in every index by ID, however many old ones are stored. The time
 * in an ID is no secret: the status, which needs only the ID, contains it, too.
 */
export function newBackendId(now: Date = new Date()): string {
  const seconds = Math.floor(now.getTime() / 1000) % 36 ** idTimeLength;
  return seconds.toString(36).padStart(idTimeLength, '0') + randomText(alphabet, randomLength);
}

/** Random characters of an alphabet, which cannot be guessed. */
export function randomText(characters: string, length: number): string {
  let random = '';
  for (let i = 0; i < length; i += 1) random += characters[randomInt(characters.length)];
  return random;
}
