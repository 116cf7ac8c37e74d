import { createServer, connect } from 'node:net';
import type { Socket } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A way to the engine that a test can close, as if the engine were restarting. */
export interface EngineGate extends AsyncDisposable {
  /** In the form of `DOCKER_HOST`. */
  readonly host: string;
  /** Cuts what is open, and lets nothing new in. */
  close(): void;
  open(): void;
}

/** @param target - where the engine listens: `unix:///path` or `tcp://host:port` */
export async function openEngineGate(target: string): Promise<EngineGate> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-gate-'));
  const path = join(folder, 'docker.sock');
  const sockets = new Set<Socket>();
  let isOpen = true;
  const server = createServer((socket) => {
    if (!isOpen) {
      socket.destroy();
      return;
    }
    const engine = connectTo(target);
    for (const [from, to] of [
      [socket, engine],
      [engine, socket],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk: Buffer) => to.write(chunk));
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const close = () => {
    isOpen = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    host: `unix://${path}`,
    close,
    open: () => {
      isOpen = true;
    },
    [Symbol.asyncDispose]: async () => {
      close();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function connectTo(target: string): Socket {
  if (target.startsWith('unix://')) return connect(target.slice('unix://'.length));
  const { hostname, port } = new URL(target);
  return connect(Number(port), hostname);
}
