/** Password guesses that are spread over the processes of a platform. */
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openTestRegistry } from '../kit/registry/registry.ts';
import { testDrivers } from '../kit/servers/drivers.ts';

describe.each(testDrivers().map((drivers) => ({ drivers, name: drivers === 'embedded' ? 'SQLite' : 'MongoDB' })))(
  'On $name',
  ({ drivers }) => {
    test('two registries count failed logins together, also concurrent ones', async () => {
      const clock = new ManualClock(new Date());
      await using registry = await openTestRegistry({ drivers, clock, limits: { failedLoginsPerMinute: 5 } });
      const statusOf = async (user: string, password: string) => {
        const headers = { authorization: registry.basic(user, password) };
        return (await registry.send('/token', { headers })).status;
      };
      const guesses = await Promise.all(Array.from({ length: 12 }, async () => await statusOf('acme', 'wrong')));
      expect(guesses.filter((status) => status === 401)).toHaveLength(5);
      expect(guesses.filter((status) => status === 429)).toHaveLength(7);
      // Each registry has rejected a guess for the limit, so it also rejects the right password.
      expect([await statusOf('acme', registry.token), await statusOf('acme', registry.token)]).toEqual([429, 429]);
      expect(await statusOf('other', await registry.addToken('other', ['read']))).toBe(200);
      await clock.advance(12_000);
      expect([await statusOf('acme', registry.token), await statusOf('acme', registry.token)]).toEqual([200, 200]);
    });
  },
);
