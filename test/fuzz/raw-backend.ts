/** A backend whose behaviour is encoded in the path of each request. It runs alone in a container. */
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import type { Plan } from './plan.ts';

const server = createServer((socket) => {
  let received = '';
  let echoes = false;
  socket.setNoDelay();
  socket.on('error', () => {});
  socket.on('data', (bytes: Buffer) => {
    if (echoes) {
      socket.write(bytes);
      return;
    }
    received += bytes.toString('latin1');
    const end = endOfRequest(received);
    if (end < 0) return;
    const plan = planOf(received);
    const rest = received.slice(end);
    received = '';
    echoes = plan.echoes;
    act(socket, plan);
    if (echoes && rest !== '') socket.write(rest, 'latin1');
  });
});
server.listen(Number(process.env['PORT'] ?? '8080'));

function planOf(head: string): Plan {
  const path = head.split(' ', 2)[1] ?? '';
  return JSON.parse(Buffer.from(path.slice(1), 'base64url').toString()) as Plan;
}

/** The end of the first request; -1 if it is incomplete. */
function endOfRequest(text: string): number {
  const end = text.indexOf('\r\n\r\n') + 4;
  if (end < 4) return -1;
  const isChunked = /\r\ntransfer-encoding: chunked\r\n/i.test(text.slice(0, end));
  if (!isChunked) return end;
  const last = text.indexOf('\r\n0\r\n\r\n', end - 2);
  return last < 0 ? -1 : last + 7;
}

function act(socket: Socket, { answer, cutAt, how }: Plan): void {
  const bytes = Buffer.from(answer, 'base64url');
  if (cutAt === undefined) {
    socket.write(bytes);
    return;
  }
  const cut = () => {
    if (how === 'end') socket.end();
    else if (how === 'reset') socket.resetAndDestroy();
    else socket.destroy();
  };
  if (cutAt === 0) cut();
  else socket.write(bytes.subarray(0, cutAt), cut);
}
