import { createServer, connect } from 'node:net';
import type { Socket } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A proxy to the engine that a test can close, as if the engine were restarting, or silence, as if the engine were deadlocked. */
export interface EngineGate extends AsyncDisposable {
  /** As in `DOCKER_HOST`. */
  readonly host: string;
  /** Closes all connections, and refuses new ones. */
  close(): void;
  /** Accepts all requests, but does not forward those whose `<method> <path>` matches: they get no answer. */
  silence(what?: RegExp): void;
  /** Undoes `close` or `silence`. Silenced connections are closed, as when a silent engine is killed. */
  open(): void;
  /** The number of requests so far whose `<method> <path>` matches. */
  asked(what: RegExp): number;
  /** The number of open connections whose last request matches. */
  openAfter(what: RegExp): number;
}

/** @param target - the socket of the engine: `unix:///path` */
export async function openEngineGate(target: string): Promise<EngineGate> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-gate-'));
  const path = join(folder, 'docker.sock');
  /** The open sockets, each with its last request, if any. */
  const sockets = new Map<Socket, string>();
  const silent = new Set<Socket>();
  let isOpen = true;
  let silence: RegExp | undefined;
  const requests: string[] = [];
  const server = createServer((socket) => {
    if (!isOpen) {
      socket.destroy();
      return;
    }
    const engine = connect(target.slice('unix://'.length));
    for (const [from, to] of bothWays(socket, engine)) {
      sockets.set(from, '');
      from.on('data', (chunk: Buffer) => {
        // The head of a request arrives in one chunk, and its connection carries no other request until the answer.
        const [line] = /^[A-Z]+ \S+(?= HTTP)/.exec(chunk.toString('latin1')) ?? [];
        if (from === socket && line !== undefined) {
          requests.push(line);
          sockets.set(socket, line);
        }
        if (from === socket && silence?.test(line ?? '')) silent.add(socket);
        else to.write(chunk);
      });
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        silent.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const close = () => {
    isOpen = false;
    for (const socket of sockets.keys()) socket.destroy();
  };
  return {
    host: `unix://${path}`,
    close,
    silence: (what = /^/) => {
      silence = what;
    },
    open: () => {
      isOpen = true;
      silence = undefined;
      for (const socket of silent) socket.destroy();
    },
    asked: (what) => requests.filter((line) => what.test(line)).length,
    openAfter: (what) => [...sockets.values()].filter((line) => what.test(line)).length,
    [Symbol.asyncDispose]: async () => {
      close();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function bothWays(one: Socket, other: Socket): [Socket, Socket][] {
  return [
    [one, other],
    [other, one],
  ];
}
