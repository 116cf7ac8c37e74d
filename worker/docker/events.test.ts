import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { expect, test, vi } from 'vitest';
import { silentLog } from '../../core/log/log.ts';
import { followEvents } from './events.ts';
import type { ContainerEvent } from './events.ts';
import { backendLabel } from './labels.ts';

test('after a gap, the engine replays its events from the last one on, by its own clock', async () => {
  await using engine = await startEngine();
  const closing = new AbortController();
  const events: ContainerEvent[] = [];
  const listener = { onOpen: () => {}, onEvent: (event: ContainerEvent) => void events.push(event) };
  const following = followEvents(engine.docker, { node: 'n', log: silentLog(), signal: closing.signal }, listener);
  await vi.waitUntil(() => engine.asked.length === 1, { timeout: 30_000 });
  expect(engine.asked).toEqual(['0']);
  // The clock of this process is decades ahead.
  engine.streams[0]?.end(eventAt(1_000, 'one'));
  await vi.waitUntil(() => engine.asked.length === 2, { timeout: 30_000 });
  expect(engine.asked[1]).toBe('1000');
  engine.streams[1]?.write(eventAt(1_001, 'two'));
  await vi.waitUntil(() => events.length === 2, { timeout: 30_000 });
  expect(events.map(({ kind, container }) => [kind, container])).toEqual([
    ['exited', 'one'],
    ['exited', 'two'],
  ]);
  closing.abort();
  await following;
});

function eventAt(time: number, container: string): string {
  return `${JSON.stringify({ time, Action: 'die', Actor: { ID: container, Attributes: { [backendLabel]: 'b' } } })}\n`;
}

/** A server in place of the engine, with the start of the period that each request for events asks for. */
async function startEngine() {
  const folder = await mkdtemp(join(tmpdir(), 'berth-events-'));
  const asked: (string | null)[] = [];
  const streams: ServerResponse[] = [];
  const server = createServer((request, response) => {
    asked.push(new URL(request.url ?? '', 'http://engine').searchParams.get('since'));
    response.flushHeaders();
    streams.push(response);
  });
  const socketPath = join(folder, 'engine.sock');
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    docker: new Docker({ socketPath }),
    asked,
    streams,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(folder, { recursive: true });
    },
  };
}
