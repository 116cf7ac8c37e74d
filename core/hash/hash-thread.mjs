/**
 * A thread that hashes. Started by `hash-threads.ts`. In JavaScript: for TypeScript, Node would load what strips its types
 * into each thread, which takes 10 MB.
 */
import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';

/** @import { HashAnswer, HashRequest } from './hash-messages.ts' */

/** @type {Map<number, import('node:crypto').Hash>} */
const hashes = new Map();

/** What is read of a file at a time: it stays in the processor's cache. */
const buffer = Buffer.allocUnsafeSlow(256 * 1024);

/** @param {HashAnswer} message */
function answer(message) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(message);
}

/**
 * @param {import('node:crypto').Hash | undefined} hash
 * @param {{ readonly fd: number, readonly part: import('./hash.ts').FilePart }} from
 */
function updateFromFile(hash, { fd, part }) {
  for (let at = part.start; at < part.end;) {
    const read = readSync(fd, buffer, 0, Math.min(buffer.length, part.end - at), at);
    if (read === 0) throw new Error(`The file ends at ${at}, before ${part.end}`);
    hash?.update(buffer.subarray(0, read));
    at += read;
  }
}

parentPort?.on('message', (/** @type {HashRequest} */ request) => {
  if (request.kind === 'begin') {
    hashes.set(request.hash, createHash(request.algorithm));
    return;
  }
  const hash = hashes.get(request.hash);
  if (request.kind === 'update') {
    for (const part of request.parts) {
      hash?.update(part);
      // Nobody else has its memory: see `owned-bytes.ts`.
      part.buffer.transfer(0);
    }
    answer({ kind: 'taken', hash: request.hash });
    return;
  }
  if (request.kind === 'update-shared') {
    hash?.update(request.bytes);
    answer({ kind: 'taken', hash: request.hash });
    return;
  }
  if (request.kind === 'update-from-file') {
    try {
      updateFromFile(hash, request);
      answer({ kind: 'taken', hash: request.hash });
    } catch (error) {
      answer({ kind: 'failed', hash: request.hash, message: String(error) });
    }
    return;
  }
  if (request.kind === 'digest' && hash) answer({ kind: 'digest', hash: request.hash, hex: hash.digest('hex') });
  hashes.delete(request.hash);
});
