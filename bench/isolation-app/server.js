// A backend with small answers, on connections that stay open.
import { createServer } from 'node:http';

const server = createServer((_request, response) => response.end('Hello World!'));
server.keepAliveTimeout = 0;
server.listen(Number(process.env.PORT));
