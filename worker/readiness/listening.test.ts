import { connect, createServer } from 'node:net';
import type { Server } from 'node:net';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../core/clock/system-clock.ts';
import { freePort } from '../../test/kit/machine/free-port.ts';
import { pauseAfter, untilListening } from './listening.ts';

async function listenOn(port: number): Promise<{ server: Server; connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { server, connections: () => connections };
}

/** Resolves when a connection was refused: every earlier attempt was refused by then, too. */
async function refused(port: number): Promise<void> {
  await new Promise<void>((resolve) => connect(port, '127.0.0.1').once('error', () => resolve()));
}

describe('untilListening', () => {
  it('resolves after one connection, the only one that the application sees', async () => {
    const port = await freePort();
    const listening = untilListening({ host: '127.0.0.1', ports: { port } }, systemClock, new AbortController().signal);
    await refused(port);
    const { server, connections } = await listenOn(port);
    await listening;
    await new Promise((resolve) => server.close(resolve));
    expect(connections()).toBe(1);
  });

  it('rejects when its signal aborts', async () => {
    const controller = new AbortController();
    const port = await freePort();
    const listening = untilListening({ host: '127.0.0.1', ports: { port } }, systemClock, controller.signal);
    controller.abort(new Error('stopped'));
    await expect(listening).rejects.toThrow('stopped');
  });
});

describe('pauseAfter', () => {
  it('is short in the first seconds, grows, and stays at a tenth of a second', () => {
    expect(pauseAfter(0)).toBeLessThan(10);
    expect(pauseAfter(4_999)).toBeLessThan(10);
    expect(pauseAfter(8_000)).toBeGreaterThan(20);
    expect(pauseAfter(600_000)).toBe(100);
  });
});
