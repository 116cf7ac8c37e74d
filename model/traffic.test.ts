import { expect, test } from 'vitest';
import { sumTraffic } from './traffic.ts';
import type { Traffic } from './traffic.ts';

function counted(proxy: string, second: number): Traffic {
  const counts = { requests: 1, receivedBytes: 10, sentBytes: 100, openConnections: 2 };
  return { id: `${proxy}/${second}`, backend: 'b', proxy, ...counts, writtenAt: new Date(second * 1_000) };
}

test('the traffic of a backend is the sum of the counts of all proxies, and only live proxies have open connections', () => {
  const documents = [counted('dead', 1), counted('alive', 3), counted('alive', 2)];
  expect(sumTraffic(documents, (proxy) => proxy === 'alive')).toEqual({
    requests: 3,
    receivedBytes: 30,
    sentBytes: 300,
    openConnections: 4,
    writtenAt: new Date(3_000),
  });
});

test('the traffic of a backend without documents is zero', () => {
  expect(sumTraffic([], () => true)).toMatchObject({ requests: 0, openConnections: 0, writtenAt: undefined });
});
