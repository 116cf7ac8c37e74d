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

  it('ignores a port that is open only for a moment, as a program opens it that looks for a free one', async () => {
    const port = await freePort();
    let resets = 0;
    const probe = createServer((socket) => {
      resets += 1;
      // What the kernel does with a connection that is not accepted before the port is closed.
      socket.resetAndDestroy();
    });
    await new Promise<void>((resolve) => probe.listen(port, '127.0.0.1', resolve));
    const host = '127.0.0.1';
    let isListening = false;
    const listening = untilListening({ host, ports: { port } }, systemClock, new AbortController().signal);
    void listening.then(() => (isListening = true));
    await expect.poll(() => resets).toBeGreaterThan(1);
    await new Promise((resolve) => probe.close(resolve));
    await refused(port);
    expect(isListening).toBe(false);
    const { server } = await listenOn(port);
    await listening;
    await new Promise((resolve) => server.close(resolve));
  });

  it('resolves when the program closes the connection at once, or greets its client', async () => {
    for (const greeting of ['', 'SSH-2.0-test\r\n']) {
      const port = await freePort();
      const server = createServer((socket) => socket.on('error', () => {}).end(greeting));
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
      const expected = { host: '127.0.0.1', ports: { port } };
      expect(await untilListening(expected, systemClock, new AbortController().signal)).toEqual({ port });
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('finds the forward of a port that stays closed', async () => {
    const [port, from] = [await freePort(), await freePort()];
    const forward = { port: from, targetPort: port };
    let isForwarded = false;
    const expected = { host: '127.0.0.1', ports: { port }, forward: () => (isForwarded ? forward : undefined) };
    const listening = untilListening(expected, systemClock, new AbortController().signal);
    await refused(port);
    isForwarded = true;
    const { server } = await listenOn(from);
    expect(await listening).toBe(forward);
    await new Promise((resolve) => server.close(resolve));
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
