// Takes about 9 s
/** What holds for backends nearby holds for those behind a gateway: the same tests, with another way between. */
import { vi } from 'vitest';
import type * as RealHouse from '../testing/house.ts';
import type { House, Program } from '../testing/house.ts';
import type { TestNode } from '../testing/node.ts';

vi.mock('../testing/house.ts', async (importOriginal) => {
  const real = await importOriginal<typeof RealHouse>();
  const { startNode } = await import('../testing/node.ts');
  const nodes = new WeakMap<House, TestNode>();

  async function openHouse(...changes: Parameters<typeof real.openHouse>): Promise<House> {
    const house = await real.openHouse(...changes);
    const node = await startNode(house);
    const close = async () => {
      await house[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    };
    const opened = { ...house, [Symbol.asyncDispose]: close };
    nodes.set(opened, node);
    return opened;
  }

  async function makeReady(house: House, backend: string, at: Pick<Program, 'address'>): Promise<void> {
    await nodes.get(house)?.adopt(backend, at);
  }

  async function spawnReady(house: House, at: Pick<Program, 'address'>, about = {}) {
    const session = await real.spawn(house, about);
    await makeReady(house, session.backend, at);
    return session;
  }

  return { ...real, openHouse, makeReady, spawnReady };
});

await import('./http-proxy.test.ts');
await import('./upgrade.test.ts');
