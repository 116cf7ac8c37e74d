/** WebSockets to the echo of the sample application. */
import { once } from 'node:events';
import { WebSocket } from 'ws';

/** Opens a WebSocket through the URL of a session. */
export async function openEcho(url: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}echo`);
  await once(socket, 'open');
  return socket;
}

/** Sends a message, and returns its echo. */
export async function echo(socket: WebSocket, message = 'still here'): Promise<string> {
  socket.send(message);
  const [bytes] = (await once(socket, 'message')) as [Buffer];
  return bytes.toString();
}
