// Takes about 15 s
/** Upload sessions that are never finished: until they are swept, they use only a little disk space. */
import { expect, test } from 'vitest';
import { againstAllRegistries, residentMiB } from './fixture.ts';

/** More than the default limit of open files, 1,024; fewer on the test database, which is slow at durable writes. */
const sessionsOn = { embedded: 3_000, shared: 300 } as const;

/** A process grows by 100 MiB while it warms up, for any number of sessions. A buffer of 64 KiB each would be more. */
const allowedMiB = 160;

againstAllRegistries((fixture) => {
  test(
    'thousands of open sessions hold no files and little memory, and can be continued',
    { timeout: 300_000 },
    async () => {
      const count = sessionsOn[fixture.drivers === 'embedded' ? 'embedded' : 'shared'];
      const before = await residentMiB(fixture.platform.registryPid);
      const locations: string[] = [];
      while (locations.length < count) {
        const batch = Array.from({ length: 100 }, async () => {
          const location = await fixture.begin('home/flood');
          // Some sessions have received bytes.
          if (locations.length % 300 === 0) await fixture.send(location, { method: 'PATCH', body: 'x'.repeat(1_000) });
          return location;
        });
        locations.push(...(await Promise.all(batch)));
      }
      expect(new Set(locations).size).toBe(count);
      expect(await fixture.uploads()).toHaveLength(count);
      await fixture.assertFilesClosed();
      expect((await residentMiB(fixture.platform.registryPid)) - before).toBeLessThan(allowedMiB);
      const cancel = async (location: string) => (await fixture.send(location, { method: 'DELETE' })).status;
      while (locations.length > 0) {
        const statuses = await Promise.all(locations.splice(0, 100).map(async (location) => await cancel(location)));
        expect(new Set(statuses)).toEqual(new Set([204]));
      }
    },
  );
});
