import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { silentLog } from '../core/log/log.ts';
import { loadConfig } from './config/config.ts';
import { openPlatform } from './platform.ts';
import { allRoles } from './config/roles.ts';
import type * as proxyComponent from './components/proxy.ts';

/** The real proxy, except that closing it fails. */
vi.mock('./components/proxy.ts', async (importOriginal) => {
  const { startProxy } = await importOriginal<typeof proxyComponent>();
  return {
    startProxy: async (...args: Parameters<typeof startProxy>) => {
      const proxy = await startProxy(...args);
      const close = proxy[Symbol.asyncDispose].bind(proxy);
      return Object.assign(proxy, {
        [Symbol.asyncDispose]: async () => {
          await close();
          throw new Error('The proxy cannot be closed');
        },
      });
    },
  };
});

test('if one component fails to close, all others are closed, and the error is logged and thrown', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-'));
  const config = loadConfig({
    BERTH_DATA_FOLDER: folder,
    DOCKER_HOST: `unix://${folder}/no-engine.sock`,
    BERTH_API_PORT: '0',
    BERTH_REGISTRY_PORT: '0',
    BERTH_PROXY_PORT: '0',
    BERTH_OPERATIONS_PORT: '0',
    BERTH_PROXY_THREADS: '0',
  });
  const log = silentLog();
  const logged = vi.spyOn(log, 'error');
  const platform = await openPlatform({ config, log, roles: allRoles });
  await expect(platform[Symbol.asyncDispose]()).rejects.toThrow('Not all components closed');
  expect(logged).toHaveBeenCalledWith(
    { err: expect.objectContaining({ message: 'The proxy cannot be closed' }) as Error },
    'A component did not close',
  );
  for (const url of Object.values(platform.urls)) {
    await expect(fetch(url.startsWith('http') ? url : `http://${url}`)).rejects.toThrow('fetch failed');
  }
  // The store is closed, so another platform can open it.
  const again = await openPlatform({ config, log, roles: allRoles });
  await expect(again[Symbol.asyncDispose]()).rejects.toThrow('Not all components closed');
  await rm(folder, { recursive: true });
});
