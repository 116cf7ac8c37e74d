// Takes about 15 s
// Runs in a process of its own
/** Runs the tests of directly connected backends for backends behind a gateway. */
import { vi } from 'vitest';
import type * as RealFixture from '../testing/fixture.ts';
import type { Fixture, Program } from '../testing/fixture.ts';
import type { TestNode } from '../testing/node.ts';

vi.mock('../testing/fixture.ts', async (importOriginal) => {
  const real = await importOriginal<typeof RealFixture>();
  const { startNode } = await import('../testing/node.ts');
  const nodes = new WeakMap<Fixture, TestNode>();

  async function openFixture(...changes: Parameters<typeof real.openFixture>): Promise<Fixture> {
    const fixture = await real.openFixture(...changes);
    const node = await startNode(fixture);
    const close = async () => {
      await fixture[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    };
    const opened = { ...fixture, [Symbol.asyncDispose]: close };
    nodes.set(opened, node);
    return opened;
  }

  async function makeReady(fixture: Fixture, backend: string, at: Pick<Program, 'address'>): Promise<void> {
    await nodes.get(fixture)?.adopt(backend, at);
  }

  async function spawnReady(fixture: Fixture, at: Pick<Program, 'address'>, about = {}) {
    const session = await real.spawn(fixture, about);
    await makeReady(fixture, session.backend, at);
    return session;
  }

  return { ...real, openFixture, makeReady, spawnReady };
});

await import('./web.test.ts');
await import('./upgrade.test.ts');
