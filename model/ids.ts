import { randomInt } from 'node:crypto';

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** 36^12 is 62 bits. */
const backendIdLength = 12;

/** A new backend ID. It never comes back: with 62 bits of randomness, and the store refuses to insert one twice. */
export function newBackendId(): string {
  let id = '';
  for (let i = 0; i < backendIdLength; i += 1) id += alphabet[randomInt(alphabet.length)];
  return id;
}
