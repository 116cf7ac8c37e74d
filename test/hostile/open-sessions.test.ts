// Takes about 30 s
/** Upload sessions that are begun and never ended: they may cost a little disk until they are swept, and nothing else. */
import { expect, test } from 'vitest';
import { residentMiB } from './memory.ts';
import { onAllDrivers } from './fixture.ts';

/** Each is two durable writes, which a database of tests is slow at; and far more than a process may have files open. */
const sessionsOn = { embedded: 10_000, shared: 300 } as const;

/** A process that warms up grows by a hundred, however many sessions there are. A buffer of 64 KiB each would be more. */
const allowedMiB = 160;

onAllDrivers((fixture) => {
  test(
    'thousands of open sessions hold no files and little memory, and can be gone on with',
    { timeout: 300_000 },
    async () => {
      const count = sessionsOn[fixture.drivers === 'embedded' ? 'embedded' : 'shared'];
      const before = await residentMiB(fixture.platform.registryPid);
      const locations: string[] = [];
      while (locations.length < count) {
        const batch = Array.from({ length: 100 }, async () => {
          const location = await fixture.begin('home/flood');
          // Some of them have begun to send.
          if (locations.length % 300 === 0) await fixture.send(location, { method: 'PATCH', body: 'x'.repeat(1_000) });
          return location;
        });
        locations.push(...(await Promise.all(batch)));
      }
      expect(new Set(locations).size).toBe(count);
      expect(await fixture.uploads()).toHaveLength(count);
      await fixture.assertFilesClosed();
      expect((await residentMiB(fixture.platform.registryPid)) - before).toBeLessThan(allowedMiB);
      const ends = async (location: string) => (await fixture.send(location, { method: 'DELETE' })).status;
      while (locations.length > 0) {
        const statuses = await Promise.all(locations.splice(0, 100).map(async (location) => await ends(location)));
        expect(new Set(statuses)).toEqual(new Set([204]));
      }
    },
  );
});
