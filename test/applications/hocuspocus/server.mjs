import { Server } from '@hocuspocus/server';

await new Server({ port: 1234, quiet: true }).listen();
