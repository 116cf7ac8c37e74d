/** The listeners of a process, open before its rooms are: rooms that open one after the other know each other's addresses. */
import { newGatedServer } from '../core/http/gate.ts';
import type { GatedServer } from '../core/http/gate.ts';
import { listen } from '../core/http/listener.ts';
import type { Config } from './config.ts';

/** Where the platform is reached. */
export interface PlatformUrls {
  readonly api: string;
  /** Host and port, as in an image's name. */
  readonly registry: string;
  readonly proxy: string;
  readonly operations: string;
}

/** One listener. Disposing it stops listening, lets open requests finish for a while, then cuts what is left. */
interface Door extends GatedServer, AsyncDisposable {
  readonly hostPort: string;
}

export interface Doors {
  readonly urls: PlatformUrls;
  readonly api: Door;
  readonly registry: Door;
  readonly proxy: Door;
  readonly operations: Door;
}

/** Listens on every port; `opening` closes them. Throws what `listen` fails with when a port is taken. */
export async function openDoors(config: Config, opening: AsyncDisposableStack): Promise<Doors> {
  const registry = opening.use(await openDoor(config.host, config.registryPort));
  const proxy = opening.use(await openDoor(config.host, config.proxyPort));
  const api = opening.use(await openDoor(config.host, config.apiPort));
  const operations = opening.use(await openDoor('127.0.0.1', config.operationsPort));
  const urls = {
    api: config.apiUrl ?? `http://${api.hostPort}`,
    registry: config.registryUrl ? new URL(config.registryUrl).host : registry.hostPort,
    proxy: config.proxyUrl ?? `http://${proxy.hostPort}`,
    operations: `http://${operations.hostPort}`,
  };
  return { urls, api, registry, proxy, operations };
}

async function openDoor(host: string, port: number): Promise<Door> {
  const gate = newGatedServer();
  const listener = await listen(gate.server, { host, port });
  return {
    ...gate,
    hostPort: `${host}:${listener.port}`,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}
