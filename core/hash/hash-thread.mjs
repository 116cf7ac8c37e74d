/**
 * A thread that hashes. Started by `hash-threads.ts`. In JavaScript: for TypeScript, Node would load what strips its types
 * into each thread, which takes 10 MB.
 */
import { createHash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';

/** @import { HashAnswer, HashRequest } from './hash-messages.ts' */

/** @type {Map<number, import('node:crypto').Hash>} */
const hashes = new Map();

/** @param {HashAnswer} message */
function answer(message) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(message);
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
  if (request.kind === 'digest' && hash) answer({ kind: 'digest', hash: request.hash, hex: hash.digest('hex') });
  hashes.delete(request.hash);
});
