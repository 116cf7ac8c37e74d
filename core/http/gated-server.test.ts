import { once } from 'node:events';
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { newGatedServer } from './gated-server.ts';
import type { ServerHandlers } from './gated-server.ts';
import { listen, newServer } from './listener.ts';

const explain: ServerHandlers['explain'] = (problem) => ({ problem });

async function open(handlers: ServerHandlers, options: ServerOptions = {}) {
  const gate = newGatedServer(options);
  gate.open(handlers);
  const listener = await listen(gate.server, { host: '127.0.0.1', port: 0 });
  /** Writes these parts, and returns everything that the server sends until it closes the connection. */
  const exchange = async (...parts: readonly string[]): Promise<string> => {
    const socket = connect(listener.port, '127.0.0.1')
      .setEncoding('latin1')
      .on('error', () => {});
    let received = '';
    socket.on('data', (text: string) => (received += text));
    const closed = once(socket, 'close');
    for (const [at, part] of parts.entries()) {
      // Each part follows an answer to the previous part.
      if (at > 0) await once(socket, 'data');
      socket.write(part);
    }
    await closed;
    return received;
  };
  return { exchange, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
}

const head = 'POST / HTTP/1.1\r\nhost: x\r\n';

test('a request that cannot be parsed is answered in the words of the component, and the connection is closed', async () => {
  const handlers: ServerHandlers = {
    handle: (request, response) => void request.resume().on('end', () => response.end()),
    explain,
  };
  await using server = await open(handlers);
  const cases = [
    ['nonsense\r\n\r\n', '400 Bad Request', 'malformed'],
    ['GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n', '400 Bad Request', 'malformed'],
    [`${head}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`, '400 Bad Request', 'malformed'],
    [`${head}transfer-encoding: chunked\r\n\r\nnot a length\r\n`, '400 Bad Request', 'malformed'],
    [`${head}x: ${'y'.repeat(20_000)}\r\n\r\n`, '431 Request Header Fields Too Large', 'head-too-large'],
  ] as const;
  for (const [sent, status, problem] of cases) {
    const body = JSON.stringify({ problem });
    const headers = `connection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
    expect(await server.exchange(sent)).toBe(`HTTP/1.1 ${status}\r\n${headers}\r\n${body}`);
  }
});

test('a head that does not arrive in time is answered with 408', async () => {
  const times = { headersTimeout: 50, connectionsCheckingInterval: 20 };
  await using server = await open({ handle: (_request, response) => void response.end(), explain }, times);
  expect(await server.exchange('GET / HTTP/1.1\r\nhost:')).toMatch(/^HTTP\/1\.1 408 .*"head-too-slow"/s);
});

test('an answer that has begun is cut off, and no other answer follows inside it', async () => {
  const handlers: ServerHandlers = { handle: (_request, response) => void response.write('begun'), explain };
  await using server = await open(handlers);
  const received = await server.exchange(`${head}transfer-encoding: chunked\r\n\r\n`, 'not a length\r\n');
  expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n.*begun\r\n$/s);
});

test('nonsense after a complete answer is answered', async () => {
  const handlers: ServerHandlers = { handle: (_request, response) => void response.end('over'), explain };
  await using server = await open(handlers);
  const received = await server.exchange('GET / HTTP/1.1\r\nhost: x\r\n\r\n', 'nonsense\r\n\r\n');
  expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n.*overHTTP\/1\.1 400 .*"malformed"/s);
});

test('without words of a component, the answer is the status', async () => {
  await using server = await open({ handle: (_request, response) => void response.end() });
  expect(await server.exchange('nonsense\r\n\r\n')).toMatch(
    /\r\ncontent-type: text\/plain\r\n.*\r\n\r\nBad Request\n$/s,
  );
});

test('adds no listeners to answers', async () => {
  const counts: number[] = [];
  const handle = (_request: IncomingMessage, response: ServerResponse) => {
    // After all listeners of the request have run.
    setImmediate(() => {
      counts.push(response.listenerCount('close'));
      response.end();
    });
  };
  await using server = await open({ handle, explain });
  // As many listeners as without a gated server: the listener waits for open answers when it closes.
  await server.exchange('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  const bare = newServer().on('request', handle);
  await using listener = await listen(bare, { host: '127.0.0.1', port: 0 });
  await fetch(`http://127.0.0.1:${listener.port}`);
  expect(counts).toEqual([counts[1], counts[1]]);
});
