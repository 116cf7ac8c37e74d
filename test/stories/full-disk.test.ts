// Takes about 35 s
/** The disk with the data folder is full: sessions continue, and writes of content are rejected until there is space. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { api } from '../kit/platform/api-client.ts';
import { echo, openEcho } from '../kit/platform/echo.ts';
import type { TestEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { canMount, SmallDisk, whyNoDisk } from '../kit/machine/small-disk.ts';
import { Fixture } from './fixture.ts';

const reserveMib = 8;
const soon = { interval: 250, timeout: 50_000 };
const rejectedPush = /507 Insufficient Storage: no space left on device/;

const engines = testEngines();
const why = engines.length === 0 ? ' (skipped: there is no Docker Engine)' : whyNoDisk;

async function openOnDisk(engine: TestEngine, disk: SmallDisk): Promise<Fixture> {
  const settings = { BERTH_DATA_FOLDER: disk.path, BERTH_DISK_RESERVE_MIB: String(reserveMib) };
  return await Fixture.open({ engine, drivers: 'embedded' }, settings);
}

/** The status of `/readyz`, and its checks of the disk and the store. */
async function readiness({ platform }: Fixture): Promise<readonly [number, string | undefined, string | undefined]> {
  const answer = await fetch(`${platform.operationsUrl}/readyz`);
  const { checks } = (await answer.json()) as { checks: Record<string, string> };
  return [answer.status, checks['disk'], checks['store']];
}

async function assertAlive(socket: WebSocket): Promise<void> {
  expect(await echo(socket)).toBe('still here');
}

describe.each(engines.length > 0 ? engines : [{ version: 'none' } as TestEngine])(
  'on Docker Engine $version',
  (engine) => {
    test.runIf(canMount && engines.length > 0)(
      `a session with a key survives a full disk, and restarts on it; pushes are rejected until there is space${why}`,
      { timeout: 240_000 },
      async () => {
        await using disk = await SmallDisk.mount(128);
        await using fixture = await openOnDisk(engine, disk);
        await fixture.pushSample();
        const pad = await fixture.connectReady('pad', { key: 'through' });
        const container = await fixture.containerOf(pad);
        const page = await openEcho(pad.url);
        await expect.poll(() => readiness(fixture), soon).toEqual([200, 'ok', 'ok']);

        await disk.fillUpTo(reserveMib - 1);
        await expect.poll(async () => (await readiness(fixture))[0], soon).toBe(503);
        expect((await readiness(fixture))[1]).toMatch(/^The disk is full: .+ are free, and 8 MiB are kept free/);
        await expect(fixture.pushWithDocker('serve')).rejects.toThrow(rejectedPush);
        expect(await readdir(join(disk.path, 'blobs', 'uploads'))).toEqual([]);
        // The reserve keeps everything else working.
        const again = await fixture.connect('pad', { key: 'through' });
        expect([again.spawned, again.backend_id]).toEqual([false, pad.backend_id]);
        await assertAlive(page);

        await disk.fillUpTo(0);
        const path = `/v2/service/${fixture.platform.account}/pad/connect`;
        const connect = async () => await api(fixture.platform, path, { method: 'POST', body: '{"key":"through"}' });
        // Writes that fit into the write-ahead log still succeed.
        await expect.poll(async () => (await connect()).status, { ...soon, interval: 1 }).toBe(503);
        const rejected = await connect();
        expect(await rejected.json()).toMatchObject({
          error: { code: 'Unavailable', message: 'The disk is full, try again when there is space' },
        });
        expect((await fetch(pad.url)).status).toBe(200);
        await assertAlive(page);

        await fixture.platform.stop();
        page.terminate();
        await disk.fillUpTo(0);
        await fixture.platform.restart();
        expect((await readiness(fixture))[0]).toBe(503);
        const reopened = await openEcho(pad.url);
        await assertAlive(reopened);
        await expect(fixture.pushWithDocker('serve')).rejects.toThrow(rejectedPush);
        await fixture.platform.kill();
        reopened.terminate();
        await disk.fillUpTo(0);
        await fixture.platform.restart();
        const reopenedAgain = await openEcho(pad.url);
        await assertAlive(reopenedAgain);

        await disk.heal();
        await expect.poll(() => readiness(fixture), soon).toEqual([200, 'ok', 'ok']);
        await fixture.push('serve');
        expect((await fetch((await fixture.connectReady('serve')).url)).status).toBe(200);
        const after = await fixture.connect('pad', { key: 'through' });
        expect([after.spawned, after.backend_id]).toEqual([false, pad.backend_id]);
        await assertAlive(reopenedAgain);
        expect(await fixture.containerOf(pad)).toBe(container);
        reopenedAgain.close();
      },
    );
  },
);
