/** An ordinary application: Express with absolute paths, cookies and a WebSocket. It has no code for Berth. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import express from 'express';
import { WebSocketServer } from 'ws';

const app = express();

const setHeaders = (response) => response.set('Service-Worker-Allowed', '/');
app.use('/static', express.static(join(import.meta.dirname, 'page'), { setHeaders }));

app.get('/', (_request, response) => {
  response.type('html').send(`<!doctype html><title>Ordinary</title>
    <link rel="stylesheet" href="/static/style.css"><link rel="icon" href="data:,">
    <h1>Ordinary</h1><p id="who"></p><p id="live"></p><form action="/login" method="post"><button>Log in</button></form>
    <script type="module" src="/static/page.js"></script>`);
});

app.post('/login', (_request, response) => {
  const id = Math.random().toString(36).slice(2);
  response.append('Set-Cookie', `id=${id}; Path=/; HttpOnly`);
  response.append('Set-Cookie', '__Host-strict=1; Path=/; Secure');
  response.append('Set-Cookie', 'wide=1; Path=/; Domain=berth.localhost');
  response.redirect('/');
});

app.get('/absolute', (request, response) => {
  response.redirect(`http://${request.get('host')}/who`);
});

app.get('/who', (request, response) => {
  response.json({
    user: request.get('x-verified-username') ?? null,
    cookies: (request.get('cookie') ?? '').split('; ').filter(Boolean).sort(),
    prefix: request.get('x-forwarded-prefix') ?? null,
    url: process.env.SESSION_BACKEND_URL ?? null,
    backend: process.env.SESSION_BACKEND_ID ?? null,
  });
});

const server = createServer(app);
new WebSocketServer({ server, path: '/live' }).on('connection', (socket) => {
  socket.send('live');
  socket.on('message', (data) => socket.send(data));
});
server.listen(process.env.PORT);
process.once('SIGTERM', () => process.exit(0));
