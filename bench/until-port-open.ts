import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const startLimitMs = 20_000;

/** Waits until a server of this machine listens on a port. */
export async function untilPortOpen(port: number): Promise<void> {
  const endMs = Date.now() + startLimitMs;
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    if (Date.now() > endMs) throw new Error(`Port ${port} does not open`);
    await delay(50);
  }
}
