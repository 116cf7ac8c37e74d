/**
 * The values of `node:http`. An import of that module reads all of its properties, and one of them loads Node's client for `fetch` and
 * `WebSocket`: 36 ms of CPU time and 13 MB of memory in each thread. `getBuiltinModule` reads only the properties that are named here.
 */
import type * as http from 'node:http';

export const { Agent, METHODS, STATUS_CODES, ServerResponse, createServer, request } =
  process.getBuiltinModule('node:http');
export type Agent = http.Agent;
export type ServerResponse = http.ServerResponse;
