// Takes about 5 s
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { assign, backends } from '../../model/backend.ts';
import { EngineError } from '../docker/engine-error.ts';
import { openTestPlatform, polite, whyNoTests } from '../testing/test-platform.ts';
import type { TestPlatform } from '../testing/test-platform.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`a pass over containers that the engine refuses to touch ${why ?? ''}`, () => {
  let platform: TestPlatform;
  beforeEach(async () => {
    platform = await openTestPlatform();
  });
  afterEach(async () => {
    await platform?.[Symbol.asyncDispose]();
  });

  it('starts no backend while a leftover container cannot be killed, but kills the others', async () => {
    const imageDigest = await platform.images.add(polite);
    const leftOver: string[] = [];
    {
      await using _worker = await platform.openWorker();
      for (const key of ['one', 'two'])
        leftOver.push(await platform.schedule({ imageDigest, ...(await platform.claim(key)) }));
      for (const id of leftOver) await platform.until(id, 'ready');
    }
    for (const id of leftOver) await platform.declareLost(id);
    const next = await platform.schedule({ imageDigest, ...(await platform.claim('one')) }, false);
    await platform.store.update(backends, next, (backend) => assign(backend, platform.node));
    const { containers } = platform.engine.engine;
    const signal = containers.signal.bind(containers);
    const running = new Map((await containers.list()).map(({ id, backend }) => [id, backend]));
    const killed = new Set<string | undefined>();
    const failing = vi.spyOn(containers, 'signal').mockImplementation(async (id, what) => {
      killed.add(running.get(id));
      if (running.get(id) === leftOver[0]) throw new EngineError('unavailable', 'The engine is restarting');
      await signal(id, what);
    });
    await expect(platform.openWorker()).rejects.toThrow('The engine is restarting');
    expect(killed).toEqual(new Set(leftOver));
    expect((await platform.get(next)).status).toBe('scheduled');
    failing.mockRestore();
    await using _worker = await platform.openWorker();
    await platform.until(next, 'ready');
    expect((await containers.list()).map(({ backend }) => backend)).toEqual([next]);
  });
});
