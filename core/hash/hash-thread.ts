/** A thread that hashes. Started by `hash-threads.ts`. */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { HashAnswer, HashRequest } from './hash-messages.ts';
import { free } from './owned-bytes.ts';

function start(port: MessagePort): void {
  const hashes = new Map<number, Hash>();
  const answer = (message: HashAnswer) => port.postMessage(message);
  port.on('message', (request: HashRequest) => {
    if (request.kind === 'begin') {
      hashes.set(request.hash, createHash(request.algorithm));
      return;
    }
    const hash = hashes.get(request.hash);
    if (request.kind === 'update') {
      for (const part of request.parts) {
        hash?.update(part);
        free(part);
      }
      answer({ kind: 'taken', hash: request.hash });
      return;
    }
    if (request.kind === 'digest' && hash) answer({ kind: 'digest', hash: request.hash, hex: hash.digest('hex') });
    hashes.delete(request.hash);
  });
}

if (parentPort) start(parentPort);
