/** The HTTP server of the pad: the page, its WebSocket, and three small paths for trying the platform. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { Room } from './room.js';
import { isPersistent, load, save } from './saved-drawing.js';

/** The longest time between saves, so that at most this much is lost if the container is killed. */
const saveEveryMs = 5_000;

/** A client that misses a ping is disconnected, so that the others no longer see the cursor of a client that has vanished. */
const pingEveryMs = 30_000;

/** The longest message is a stroke of a few hundred points. */
const maxMessageBytes = 64 * 1024;

const files = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/style.css': ['style.css', 'text/css; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
};

const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
};

/** Opens a pad: loads the saved drawing of its key and listens. `close` saves and disconnects all clients. */
export async function openPad({ port, folder, backend, key, fencingToken, log }) {
  // Without a key, no other backend loads this drawing, so the backend's own name is used.
  const savedUnder = key ?? backend;
  const saved = await load(folder, savedUnder);
  const session = {
    backend,
    key,
    fencingToken,
    lasting: isPersistent(folder),
    loadedFrom: saved?.fencingToken ?? null,
  };
  const room = new Room(session, saved?.strokes);

  let savedChanges = 0;
  let saving = Promise.resolve();
  const saveNow = () => {
    // One save at a time, each of the drawing as it is when the save starts.
    saving = saving.then(async () => {
      const changes = room.changes;
      if (changes === savedChanges) return;
      await save(folder, { key: savedUnder, fencingToken, savedAt: new Date().toISOString(), strokes: room.strokes });
      savedChanges = changes;
    });
    return saving;
  };
  const timer = setInterval(() => void saveNow().catch((error) => log('Cannot save', error)), saveEveryMs);

  const page = await readPage();
  const server = createServer((request, response) => answer(request, response, page));
  const sockets = new WebSocketServer({ noServer: true, maxPayload: maxMessageBytes });
  server.on('upgrade', (request, socket, head) => {
    const path = pathOf(request);
    if (path !== '/ws' && path !== '/echo') {
      socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      keepAlive(webSocket);
      if (path === '/echo') echo(webSocket);
      else enter(room, webSocket, request);
    });
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, resolve));

  return {
    port: server.address().port,
    folder,
    async close() {
      clearInterval(timer);
      room.broadcast({ type: 'ending' });
      try {
        await saveNow();
      } finally {
        for (const webSocket of sockets.clients) webSocket.close(1001, 'This backend ends');
        await new Promise((resolve) => {
          server.close(resolve);
          server.closeAllConnections();
        });
      }
    },
  };
}

function enter(room, webSocket, request) {
  const seat = room.join(verifiedName(request), (text) => webSocket.send(text));
  if (!seat) {
    webSocket.close(1013, 'The room is full');
    return;
  }
  webSocket.on('message', (data, isBinary) => isBinary || seat.receive(data.toString()));
  webSocket.on('close', seat.leave);
  webSocket.on('error', () => webSocket.terminate());
}

function echo(webSocket) {
  webSocket.on('message', (data, isBinary) => webSocket.send(data, { binary: isBinary }));
  webSocket.on('error', () => webSocket.terminate());
}

function keepAlive(webSocket) {
  let heard = true;
  const timer = setInterval(() => {
    if (heard) webSocket.ping();
    else webSocket.terminate();
    heard = false;
  }, pingEveryMs);
  webSocket.on('pong', () => (heard = true));
  webSocket.on('close', () => clearInterval(timer));
}

function answer(request, response, page) {
  const path = pathOf(request);
  const file = page.get(path);
  if (request.method !== 'GET' && request.method !== 'HEAD') send(response, 405, 'Only GET here\n');
  else if (path === '/healthz') sendJson(response, { status: 'ok' });
  else if (path === '/whoami') sendJson(response, verifiedHeaders(request));
  else if (!file) send(response, 404, 'There is nothing here\n');
  else {
    response.writeHead(200, { ...pageHeaders, 'content-type': file.type, 'content-length': file.body.length });
    response.end(file.body);
  }
}

function pathOf(request) {
  return request.url.split('?', 1)[0];
}

/** The headers that no client can forge. Of the secret, the page gets only whether it is set. */
function verifiedHeaders({ headers }) {
  const verified = Object.entries(headers).filter(([name]) => name.startsWith('x-verified-'));
  return Object.fromEntries(verified.map(([name, value]) => [name, name === 'x-verified-secret' ? '(set)' : value]));
}

/** The `user` of the connect request. It arrives as UTF-8, which Node decodes as Latin-1. */
function verifiedName({ headers }) {
  const name = headers['x-verified-username'];
  return name ? Buffer.from(name, 'latin1').toString('utf8').slice(0, 64) : undefined;
}

async function readPage() {
  const page = new Map();
  for (const [path, [name, type]] of Object.entries(files)) {
    page.set(path, { type, body: await readFile(new URL(`page/${name}`, import.meta.url)) });
  }
  return page;
}

function sendJson(response, value) {
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(`${JSON.stringify(value)}\n`);
}

function send(response, status, text) {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
}
