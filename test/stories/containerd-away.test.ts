// Takes about 45 s
/** The containerd of a Docker Engine is killed: sessions continue, and backends scheduled meanwhile start. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canStartEngines, startEngine, withoutFirewall } from '../kit/engines/docker-engine.ts';
import type { EngineKind, RunningEngine } from '../kit/engines/docker-engine.ts';
import { testEngines } from '../kit/engines/engines.ts';
import { Fixture } from './fixture.ts';

// Needs its own engine, because other tests use the others.
const canStart = await canStartEngines();
const why = canStart ? '' : ' (skipped: no Docker Engine can be started here)';

/** The error messages of engines differ between releases. */
const kinds: EngineKind[] = testEngines().some(({ kind }) => kind === 'modern') ? ['stable', 'modern'] : ['stable'];

describe.skipIf(!canStart).each(kinds)(`while containerd restarts below an engine (%s)${why}`, (kind) => {
  let engine: RunningEngine;
  beforeAll(async () => {
    engine = await startEngine(kind, withoutFirewall);
  });
  afterAll(async () => await engine?.[Symbol.asyncDispose]());

  test('a session continues, and every scheduled backend becomes ready', async () => {
    await using fixture = await Fixture.open({ engine, drivers: 'embedded' }, { BERTH_START_TIMEOUT_SECONDS: '60' });
    await fixture.push('serve');
    const before = await fixture.connectReady('serve');
    // Two start when containerd is killed; the others are scheduled while it is down.
    const starting = [await fixture.connect('serve'), await fixture.connect('serve')];
    await fixture.statusesUntil(starting[0]!, 'starting');
    await engine.killContainerd();
    const late = await Promise.all(Array.from({ length: 4 }, async () => await fixture.connect('serve')));
    expect((await fetch(before.url)).status).toBe(200);
    for (const connection of [...starting, ...late]) {
      const statuses = await fixture.statusesUntil(connection, 'ready');
      expect(statuses.at(-1)).toMatchObject({ status: 'ready' });
    }
    expect((await fetch(before.url)).status).toBe(200);
    expect((await fixture.backend(before)).statuses.at(-1)?.status).toBe('ready');
  });
});
