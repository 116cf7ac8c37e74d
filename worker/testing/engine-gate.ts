import { createServer, connect } from 'node:net';
import type { Socket } from 'node:net';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A way to the engine that a test can close, as if the engine were restarting, or make silent, as if it had locked itself up. */
export interface EngineGate extends AsyncDisposable {
  /** In the form of `DOCKER_HOST`. */
  readonly host: string;
  /** Cuts what is open, and lets nothing new in. */
  close(): void;
  /** Takes every request from now on, and hands on none whose `<method> <path>` matches: they get no answer. */
  silence(what?: RegExp): void;
  /** As before `close` or `silence`. What was silenced is cut, as when a silent engine is killed. */
  open(): void;
  /** How many requests have come whose `<method> <path>` matches. */
  asked(what: RegExp): number;
  /** How many connections are open whose last request matches. */
  openAfter(what: RegExp): number;
}

/** @param target - where the engine listens: `unix:///path` */
export async function openEngineGate(target: string): Promise<EngineGate> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-gate-'));
  const path = join(folder, 'docker.sock');
  /** With the last request that came, if any. */
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
        // The head of a request comes in one piece, with a connection to itself while it has no answer.
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
