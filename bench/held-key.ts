import { connectReady } from '../test/kit/platform/api-client.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { apiRow } from './api-load.ts';
import type { Row } from './measurements.ts';

/** Connects to a key that a backend holds. The service `serve` must exist. */
export async function heldKey(platform: TestPlatform): Promise<Row> {
  await connectReady(platform, 'serve', { key: 'held' });
  return await apiRow(platform, {
    what: 'connect to a held key',
    method: 'POST',
    path: `/v2/service/${platform.account}/serve/connect`,
    body: { key: 'held' },
    aim: '≥ 0.4 ×',
  });
}
