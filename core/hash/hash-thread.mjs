/**
 * A thread that hashes. Started by `running-thread.ts`. Written in JavaScript, because for TypeScript Node would load its type
 * stripper into each thread, which takes 10 MB.
 */
import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';

/** @import { Hash } from 'node:crypto' */
/** @import { FilePart } from './hash.ts' */
/** @import { HashAnswer, HashRequest } from './hash.ts' */

/** @type {Map<number, Hash>} */
const hashes = new Map();

/** The buffer for one read of a file: small enough for the CPU cache. */
const buffer = Buffer.allocUnsafeSlow(256 * 1024);

parentPort?.on('message', (/** @type {HashRequest} */ request) => {
  if (request.kind === 'begin') hashes.set(request.hash, createHash(request.algorithm));
  else if (request.kind === 'drop') hashes.delete(request.hash);
  else answer(request);
});

/** @param {Exclude<HashRequest, { kind: 'begin' | 'drop' }>} request */
function answer(request) {
  /** @type {HashAnswer} */
  let message;
  try {
    message = { hash: request.hash, hex: perform(request) };
  } catch (error) {
    message = { hash: request.hash, hex: '', failure: String(error) };
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(message);
}

/** @param {Parameters<typeof answer>[0]} request */
function perform(request) {
  const hash = hashes.get(request.hash);
  if (!hash) return '';
  if (request.kind === 'update') updateFromMemory(hash, request.bytes);
  else if (request.kind === 'update-from-file') updateFromFile(hash, request.fd, request.part);
  else {
    hashes.delete(request.hash);
    return hash.digest('hex');
  }
  return '';
}

/** @param {Hash} hash @param {Uint8Array} bytes */
function updateFromMemory(hash, bytes) {
  hash.update(bytes);
  // Freed now, not by the garbage collector: see `owned-bytes.ts`.
  if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
}

/** @param {Hash} hash @param {number} fd @param {FilePart} part */
function updateFromFile(hash, fd, part) {
  for (let at = part.start; at < part.end;) {
    const read = readSync(fd, buffer, 0, Math.min(buffer.length, part.end - at), at);
    if (read === 0) throw new Error(`The file ends at ${at}, before ${part.end}`);
    hash.update(buffer.subarray(0, read));
    at += read;
  }
}
