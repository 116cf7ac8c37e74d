const express = require('express');
const { createServer } = require('node:http');
const { Server } = require('socket.io');

const app = express();
const server = createServer(app);
const io = new Server(server);

app.use(express.urlencoded());
app.get('/', (request, response) => response.sendFile(`${__dirname}/page.html`));
app.post('/say', (request, response) => {
  io.emit('said', request.body.words);
  response.redirect('/');
});
io.on('connection', (socket) => socket.on('say', (words) => io.emit('said', words)));

server.listen(process.env.PORT || 3000);
