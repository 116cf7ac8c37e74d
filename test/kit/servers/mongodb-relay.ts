import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A relay to a MongoDB that can drop responses. */
export interface MongoRelay extends AsyncDisposable {
  readonly url: string;
  /** Forwards the next message with this command, then closes the connection instead of forwarding the response. */
  dropAnswerTo(command: string): void;
  /** The number of dropped responses. */
  readonly dropped: number;
}

/** Opens a relay to a server. Clients of the relay use only that server. */
export async function openRelay(url: string): Promise<MongoRelay> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const state = { command: undefined as string | undefined, dropped: 0 };
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    let isDropping = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (bytes) => {
      // The name of a command is the first key of its message, which ends with a NUL in BSON.
      if (state.command !== undefined && bytes.includes(`${state.command}\0`)) {
        state.command = undefined;
        isDropping = true;
      }
      far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (!isDropping) {
        near.write(bytes);
        return;
      }
      state.dropped += 1;
      near.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `mongodb://127.0.0.1:${port}/?directConnection=true`,
    dropAnswerTo: (command) => {
      state.command = command;
    },
    get dropped() {
      return state.dropped;
    },
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
