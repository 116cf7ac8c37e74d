/** The fixture of the proxy's tests: a proxy on a real server with a real store and bus, and backends on loopback. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { connect, createServer as createRawServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Registry } from 'prom-client';
import { backendChanged } from '../../contract/messages.ts';
import type { Bus } from '../../core/bus/bus.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import { newGatedServer } from '../../core/http/gated-server.ts';
import { Http2Connections } from '../../core/http/http2/http2-connections.ts';
import { listen } from '../../core/http/listener.ts';
import type { CertificatePair } from '../../core/tls/certificate-pair.ts';
import { SecureContexts } from '../../core/tls/secure-contexts.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { silentLog } from '../../core/log/log.ts';
import { PlatformSecret } from '../../core/secret/platform-secret.ts';
import type { Store } from '../../core/store/store.ts';
import { assign, backends, becomeReady, becomeTerminated, newBackend } from '../../model/backend.ts';
import type { Backend, BackendAddress } from '../../model/backend.ts';
import { newBackendId } from '../../model/ids.ts';
import { newRoute, routes } from '../../model/route.ts';
import { openProxy } from '../open-proxy.ts';
import type { Proxy, ProxyDeps } from '../open-proxy.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';
import { recordingBus } from './reports.ts';
import { newToken } from './token.ts';
import { openTestStore } from '../../test/kit/ports/test-store.ts';

/** A listening proxy and its dependencies. */
export interface Fixture extends AsyncDisposable {
  readonly secret: PlatformSecret;
  readonly proxy: Proxy;
  readonly server: Server;
  readonly port: number;
  readonly url: string;
  readonly store: Store;
  readonly bus: Bus;
  readonly metrics: Registry;
  /** The open connections by backend, after each report to the nodes. */
  readonly reports: Record<string, number>[];
}

/** More than Node's default, for tests with many headers. */
const maxHeaderSize = 256 * 1024;

/** The node of all backends that have no other one. The proxy connects to them directly. */
export const localNode = 'local';

type Changes = Partial<Omit<ProxyDeps, 'localNode'>> & { readonly localNode?: string | undefined };

/** The path that plain requests take. */
export type Path = 'plain' | 'general';

let defaultPath: Path = 'plain';

/** Makes all requests take the general path. Only for a process that runs no other tests. */
export function useGeneralPath(): void {
  defaultPath = 'general';
}

type Options = Changes & {
  readonly path?: Path;
  /** The certificate, for TLS and HTTP/2. */
  readonly certificate?: CertificatePair;
  /** How long closing the listener waits for open requests. */
  readonly drainMs?: number;
};

/** Opens a store unless `store` is set, a bus, and a proxy on a free port. */
export async function openFixture({
  path = defaultPath,
  certificate,
  drainMs = 0,
  ...changes
}: Options = {}): Promise<Fixture> {
  const { localNode: node, ...others } = { localNode, ...changes };
  await using opened = new AsyncDisposableStack();
  const log = silentLog();
  const secret = new PlatformSecret(randomBytes(32));
  const store = others.store ?? opened.use(await openTestStore());
  const reports: Record<string, number>[] = [];
  const bus = recordingBus(opened.use(openInProcessBus({ log })), reports);
  const metrics = new Registry();
  const proxy = opened.use(
    await openProxy({
      id: 'proxy-1',
      store,
      bus,
      clock: systemClock,
      log,
      metrics,
      secret,
      secretFor: (token) => `secret of ${token}`,
      startTimeoutMs: 30_000,
      accessLogPercent: 100,
      hold: { ms: 60_000, requests: 5_000 },
      webSocketPingMs: 0,
      drain: { noticeMs: 0, deadlineMs: 50 },
      ...(node !== undefined && { localNode: node }),
      ...others,
    }),
  );
  const tls = certificate && { contexts: new SecureContexts([certificate]), http2: Http2Connections };
  const gate = newGatedServer({ maxHeaderSize, requireHostHeader: false }, tls);
  const { server, otherConnections } = gate;
  const { accept, ...general } = proxy;
  gate.open(path === 'plain' ? { accept, ...general } : general);
  const { port } = opened.use(await listen(server, { host: '127.0.0.1', port: 0, drainMs, otherConnections }));
  const resources = opened.move();
  return {
    secret,
    proxy,
    server,
    port,
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    store,
    bus,
    metrics,
    reports,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** A server in place of a container. */
export interface Program extends AsyncDisposable {
  readonly server: Server;
  readonly address: { host: string; port: number };
  /** How many connections it has accepted. */
  readonly connections: () => number;
}

/** Starts an HTTP server on a free port. */
export async function startProgram(listener: RequestListener): Promise<Program> {
  const server = createServer(listener);
  let connections = 0;
  server.on('connection', () => (connections += 1));
  const port = await listening(server);
  return {
    server,
    address: { host: '127.0.0.1', port },
    connections: () => connections,
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

/** Starts an HTTP server that answers with the method, URL and raw headers of each request. */
export function startMirror(): Promise<Program> {
  return startProgram((request, response) => {
    const { method, url, rawHeaders } = request;
    response.end(JSON.stringify({ method, url, rawHeaders }));
  });
}

/** Starts a TCP server that calls `onHead` for each request head that arrives. */
export async function startRawProgram(onHead: (socket: Socket, head: string) => void): Promise<RawProgram> {
  const sockets = new Set<Socket>();
  const server = createRawServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const end = received.indexOf('\r\n\r\n');
      if (end < 0) return;
      const head = received.slice(0, end + 4);
      received = received.slice(end + 4);
      onHead(socket, head);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { address: { host: '127.0.0.1', port }, sockets, [Symbol.asyncDispose]: close };
}

export interface RawProgram extends AsyncDisposable {
  readonly address: { host: string; port: number };
  /** The connections that are open now. */
  readonly sockets: ReadonlySet<Socket>;
}

/** A request as the mirror received it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: string[];
}

/** The values of a header that the mirror received, in any case. */
export function valuesOf(seen: Pick<Seen, 'rawHeaders'>, name: string): string[] {
  return seen.rawHeaders.filter((_, i, all) => i % 2 === 1 && all[i - 1]?.toLowerCase() === name);
}

export interface Session {
  readonly token: string;
  readonly backend: string;
}

/** Inserts a `scheduled` backend of the local node, and a route to it. */
export async function spawn(
  { store }: Fixture,
  about: { user?: string; auth?: Record<string, unknown>; createdAt?: Date } = {},
): Promise<Session> {
  const now = about.createdAt ?? new Date();
  const token = newToken();
  const backend = newBackendId();
  await store.insert(backends, assign(newBackend(backendPlan({ id: backend }), now), localNode));
  await store.insert(routes, newRoute(token, { backend, user: about.user, auth: about.auth }));
  return { token, backend };
}

interface BackendAt {
  readonly address: BackendAddress;
}

/** Inserts a backend that is ready at the program's address, and a route to it. */
export async function spawnReady(fixture: Fixture, at: BackendAt, about = {}): Promise<Session> {
  const session = await spawn(fixture, about);
  await makeReady(fixture, session.backend, at, { silently: true });
  return session;
}

/** Makes a backend ready, as its worker would. */
export async function makeReady(fixture: Fixture, id: string, at: BackendAt, { silently = false } = {}): Promise<void> {
  await change(fixture, id, (backend) => becomeReady(backend, at.address, new Date()), silently);
}

/** Ends a backend, as its worker would. */
export async function makeEnded(fixture: Fixture, id: string, { silently = false } = {}): Promise<void> {
  const ending = { kind: null, reason: null, exitCode: 1 };
  await change(fixture, id, (backend) => becomeTerminated(backend, ending, new Date()), silently);
}

async function change(
  fixture: Fixture,
  id: string,
  how: (backend: Backend) => Backend,
  silently: boolean,
): Promise<void> {
  const changed = await fixture.store.update(backends, id, how);
  if (!changed) throw new Error(`No backend ${id}`);
  if (!silently) await fixture.bus.publish(backendChanged, { backend: id, status: changed.status });
}

/** Waits until a condition is true, at most fifty seconds, which a busy machine may need. */
export async function until(holds: () => boolean | Promise<boolean>, clock: Clock = systemClock): Promise<void> {
  const endMs = Date.now() + 50_000;
  while (!(await holds())) {
    if (Date.now() > endMs) throw new Error(`Still false: ${holds.toString()}`);
    await clock.sleep(5);
  }
}

/** Sends bytes, and returns everything received until the other side closes. */
export async function exchangeBytes(port: number, bytes: string | Buffer): Promise<string> {
  const socket = await connected(port);
  socket.write(bytes, 'latin1');
  return gathered(socket);
}

/** The status of the answer to a plain request to a session. */
export async function status({ url }: Fixture, token: string): Promise<number> {
  const answer = await fetch(`${url}/${token}/`);
  await answer.arrayBuffer();
  return answer.status;
}

/** Opens a TCP connection. */
export async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return socket;
}

/** Reads a connection or message to its end, as Latin-1. */
export async function gathered(from: Socket | IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of from) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('latin1');
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
