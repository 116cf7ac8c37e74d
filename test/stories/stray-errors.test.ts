/** An uncaught error ends no session, and is logged and counted. */
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { echo, openEcho } from '../kit/platform/echo.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { Fixture } from './fixture.ts';

const [engine] = testEngines();
const preload = new URL('./stray-errors-preload.ts', import.meta.url).href;
const withoutServers = new URL('./without-servers-preload.ts', import.meta.url).href;

describe.skipIf(!engine)('a process with uncaught errors', () => {
  let fixture: Fixture;
  beforeAll(async () => {
    if (!engine) return;
    fixture = await Fixture.open(
      { engine, drivers: 'embedded' },
      { NODE_OPTIONS: `--import=${withoutServers} --import=${preload}` },
    );
    await fixture.pushSample();
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  /** The number of uncaught errors of a kind. */
  async function strayErrors(kind: 'exception' | 'rejection'): Promise<number> {
    const text = await (await fetch(`${fixture.platform.operationsUrl}/metrics`)).text();
    return Number(new RegExp(`^berth_stray_errors_total{kind="${kind}"} (\\d+)$`, 'm').exec(text)?.[1]);
  }

  test('keeps running with its sessions, counts the errors, and logs many of them in few lines', async () => {
    const { url } = await fixture.connectReady('pad', { key: 'open' });
    const socket = await openEcho(url);
    process.kill(fixture.platform.pid ?? -1, 'SIGUSR2');
    await expect.poll(() => strayErrors('exception'), { interval: 250 }).toBe(100);
    expect(await strayErrors('rejection')).toBe(1);
    expect(await echo(socket)).toBe('still here');
    socket.close();
    await expect.poll(() => fixture.platform.log).toMatch(/"count":\d{2,}.*Stray error/);
    const lines = fixture.platform.log.split('\n').filter((line) => line.includes('Stray error'));
    expect(lines.join('\n')).toContain('stray-errors-preload');
    expect(lines.length).toBeLessThan(20);
  });

  test.each(['mongodb', 'bullmq', 'ioredis'])(
    'has not loaded %s: a hook in each of its threads rejects the import',
    (name) => {
      const options = { cwd: import.meta.dirname, encoding: 'utf8' } as const;
      const { stderr } = spawnSync(
        process.execPath,
        [`--import=${withoutServers}`, '-e', `require('${name}')`],
        options,
      );
      const rejection = `${name} is not for a platform without servers`;
      expect(stderr).toContain(rejection);
      expect(fixture.platform.log).not.toContain(rejection);
    },
  );

  test('answers the request whose handler failed with 500', async () => {
    const before = await strayErrors('rejection');
    const answer = await fetch(`http://${fixture.platform.registry}/v2/stray`);
    expect([answer.status, await strayErrors('rejection')]).toEqual([500, before + 1]);
  });
});
