// Takes about 15 s
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { assign, backends } from '../../model/backend.ts';
import { EngineError } from '../docker/engine-error.ts';
import { leftBehind } from '../testing/fixture.ts';
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

  it.each(['refused', 'unavailable'] as const)(
    'continues with other backends if one container cannot be inspected (%s)',
    async (code) => {
      await using _worker = await platform.openWorker();
      const imageDigest = await platform.images.add(polite);
      const broken = await platform.schedule({ imageDigest });
      await platform.until(broken, 'ready');
      const { containers } = platform.engine.engine;
      const inspect = containers.inspect.bind(containers);
      const { Id: id } = await platform.containerOf(broken).inspect();
      const failing = vi.spyOn(containers, 'inspect').mockImplementation(async (asked) => {
        if (asked === id) throw new EngineError(code, 'rw layer is unexpectedly nil');
        return await inspect(asked);
      });
      await platform.containerOf(broken).kill({ signal: 'SIGKILL' });
      // Without a job, only a pass claims it.
      await platform.until(await platform.schedule({ imageDigest }, false), 'ready');
      if (code === 'refused') await platform.until(broken, 'terminated');
      expect((await platform.get(broken)).live).toBe(code === 'unavailable');
      failing.mockRestore();
      await platform.until(broken, 'terminated');
    },
  );

  it('ends a backend whose container has exited and cannot be inspected, also after a restart', async () => {
    const first = await platform.openWorker();
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    await platform.until(id, 'ready');
    await first[Symbol.asyncDispose]();
    await platform.containerOf(id).kill({ signal: 'SIGKILL' });
    await platform.containerOf(id).wait();
    const refuse = async () => await Promise.reject(new EngineError('refused', 'rw layer is unexpectedly nil'));
    vi.spyOn(platform.engine.engine.containers, 'inspect').mockImplementation(refuse);
    await using _second = await platform.openWorker();
    const ended = await platform.until(id, 'terminated');
    expect(ended.history.at(-1)).toMatchObject({ terminationReason: 'lost', exitCode: null });
    expect(await leftBehind(platform)).toEqual([]);
  });
});
