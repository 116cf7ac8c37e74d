import { describe, expect, it } from 'vitest';
import type { PullProgress } from '../../contract/messages.ts';
import type { PullOptions } from '../docker/images.ts';
import { PullYielded, Pulls } from './pulls.ts';

/** The images of an engine whose pulls end when the test resolves them. */
function heldImages() {
  const pulls: { reference: string; options: PullOptions; done: PromiseWithResolvers<void> }[] = [];
  const pull = (reference: string, options: PullOptions) => {
    const done = Promise.withResolvers<void>();
    options.signal.addEventListener('abort', () => done.reject(options.signal.reason));
    pulls.push({ reference, options, done });
    return done.promise;
  };
  return { pulls, pull };
}

const token = () => Promise.resolve('token');
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('Pulls', () => {
  it('pulls an image once for all waiting callers, and again for a later caller', async () => {
    const images = heldImages();
    const pulls = new Pulls(images);
    const { signal } = new AbortController();
    const waiting = [
      pulls.pull('a', token, { signal }),
      pulls.pull('a', token, { signal }),
      pulls.pull('b', token, { signal }),
    ];
    await settle();
    expect(images.pulls.map(({ reference }) => reference)).toEqual(['a', 'b']);
    for (const { done } of images.pulls) done.resolve();
    await Promise.all(waiting);
    void pulls.pull('a', token, { signal });
    await settle();
    expect(images.pulls).toHaveLength(3);
  });

  it('stops when the last caller stops waiting, and not before', async () => {
    const images = heldImages();
    const pulls = new Pulls(images);
    const [one, other] = [new AbortController(), new AbortController()];
    const waiting = [pulls.pull('a', token, { signal: one.signal }), pulls.pull('a', token, { signal: other.signal })];
    await settle();
    one.abort(new Error('one left'));
    await expect(waiting[0]).rejects.toThrow('one left');
    expect(images.pulls[0]?.options.signal.aborted).toBe(false);
    other.abort(new Error('other left'));
    await expect(waiting[1]).rejects.toThrow('other left');
    expect(images.pulls[0]?.options.signal.aborted).toBe(true);
  });

  it('reports the progress to each backend that waits, also to one that joins later', async () => {
    const images = heldImages();
    const pulls = new Pulls(images);
    const { signal } = new AbortController();
    const seen: string[] = [];
    const waiter = (name: string) => ({
      signal,
      onProgress: ({ layersDone }: PullProgress) => void seen.push(`${name} ${layersDone}`),
    });
    const report = (layersDone: number) =>
      images.pulls[0]?.options.onProgress?.({ layers: 3, layersDone, downloadedBytes: 0, totalBytes: 0 });
    const waiting = [pulls.pull('a', token, waiter('one'))];
    await settle();
    report(1);
    waiting.push(pulls.pull('a', token, waiter('other')));
    report(2);
    expect(seen).toEqual(['one 1', 'other 1', 'one 2', 'other 2']);
    images.pulls[0]?.done.resolve();
    await Promise.all(waiting);
    report(3);
    expect(seen).toHaveLength(4);
  });

  it('fails for all waiting callers', async () => {
    const images = heldImages();
    const pulls = new Pulls(images);
    const { signal } = new AbortController();
    const waiting = [pulls.pull('a', token, { signal }), pulls.pull('a', token, { signal })];
    await settle();
    images.pulls[0]?.done.reject(new Error('no such manifest'));
    for (const pull of waiting) await expect(pull).rejects.toThrow('no such manifest');
  });

  it('cancels a prefetch when a backend needs another image, unless a backend waits for it', async () => {
    const images = heldImages();
    const pulls = new Pulls(images);
    const { signal } = new AbortController();
    const prefetched = [pulls.prefetch('a', token, signal), pulls.prefetch('b', token, signal)];
    await settle();
    // The prefetch of the second image is just yielding to the first.
    const needed = [pulls.pull('b', token, { signal }), pulls.pull('a', token, { signal })];
    await expect(prefetched[0]).rejects.toThrow(PullYielded);
    expect(images.pulls.slice(0, 2).map(({ options }) => options.signal.aborted)).toEqual([true, false]);
    await expect(pulls.prefetch('c', token, signal)).rejects.toThrow(PullYielded);
    await settle();
    expect(images.pulls.map(({ reference }) => reference)).toEqual(['a', 'b', 'a']);
    for (const { done } of images.pulls) done.resolve();
    await Promise.all([prefetched[1], ...needed]);
    const again = pulls.prefetch('c', token, signal);
    await settle();
    images.pulls[3]?.done.resolve();
    await again;
  });

  it('pulls again when a prefetch that a backend waits for fails', async () => {
    const images = heldImages();
    const pulls = new Pulls(images);
    const { signal } = new AbortController();
    const prefetched = pulls.prefetch('a', token, signal);
    const needed = [pulls.pull('a', token, { signal }), pulls.pull('a', token, { signal })];
    await settle();
    images.pulls[0]?.done.reject(new Error('grant has run out'));
    await expect(prefetched).rejects.toThrow('grant has run out');
    await settle();
    expect(images.pulls).toHaveLength(2);
    images.pulls[1]?.done.reject(new Error('no such manifest'));
    for (const pull of needed) await expect(pull).rejects.toThrow('no such manifest');
    expect(images.pulls).toHaveLength(2);
  });
});
