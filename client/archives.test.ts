import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { BerthClient } from './index.ts';

test.each(['upload', 'download'] as const)('an %s that fails leaves no timer and no listener', async (direction) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  using _timers = { [Symbol.dispose]: () => void vi.useRealTimers() };
  const fails = async () => await Promise.reject(new TypeError('fetch failed'));
  const berth = new BerthClient({ url: 'https://berth.example', fetch: fails });
  const { signal } = new AbortController();
  const call =
    direction === 'upload'
      ? berth.uploadImage('acme/draw', { archive: new Blob([]), signal })
      : berth.downloadImage('acme/draw', 'latest', { signal });
  await expect(call).rejects.toMatchObject({ code: 'Unreachable' });
  expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []]);
});

test('an upload whose response breaks off is an error of the client, and leaves no listener', async () => {
  const broken = new ReadableStream({ start: (controller) => controller.error(new TypeError('terminated')) });
  const response = new Response(broken, { headers: { 'content-type': 'application/json' } });
  const berth = new BerthClient({ url: 'https://berth.example', fetch: async () => response });
  const { signal } = new AbortController();
  const upload = berth.uploadImage('acme/draw', { archive: new Blob([]), signal });
  await expect(upload).rejects.toMatchObject({ code: 'Unreachable' });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
