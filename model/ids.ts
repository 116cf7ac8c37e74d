import { randomInt } from 'node:crypto';

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** 36^12 is 62 bits. */
const backendIdLength = 12;

/** A new backend ID. It is never reused: it has 62 random bits, and the store rejects a duplicate. */
export function newBackendId(): string {
  let id = '';
  for (let i = 0; i < backendIdLength; i += 1) id += alphabet[randomInt(alphabet.length)];
  return id;
}
