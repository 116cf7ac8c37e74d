/** The listener of the development server: passes sessions to the proxy and all other requests to the API, without an access token. */
import { isIP } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHandlers } from '../../core/http/gated-server.ts';
import { connectionTokenPattern } from '../../model/route.ts';
import { relayConnect, sendError } from './connect.ts';
import { deletesService, ownTarget, spawns } from './own-paths.ts';

export interface FrontOptions {
  readonly api: ServerHandlers;
  readonly proxy: ServerHandlers;
  /** The listener's own address, for requests to itself. */
  readonly url: string;
  /** The access token of the account. Requests with this token are passed to the API unchanged. */
  readonly token: string;
  /** The address that the listener is bound to; requests may name it as their host. */
  readonly host: string;
  /** Waits for the build. Returns the reason if there is no image. */
  readonly imageProblem: (signal: AbortSignal) => Promise<string | undefined>;
  /** Aborts when the development server stops. */
  readonly stopping: AbortSignal;
}

/** The name of the host in containers, which no page on the internet can use. */
const hostOfContainers = 'host.docker.internal';

export function frontHandlers(options: FrontOptions): ServerHandlers {
  const { api, proxy, token } = options;
  return {
    handle: async (request, response) => {
      if (isSession(request)) return await proxy.handle(request, response);
      if (request.headers.authorization !== `Bearer ${token}` && isTrusted(request, options.host)) {
        if (await answered(request, response, options)) return;
        request.headers.authorization = `Bearer ${token}`;
      }
      await api.handle(request, response);
    },
    upgrade: (request, socket, head) => proxy.upgrade?.(request, socket, head),
    shouldUpgrade: (request) => isSession(request) && (proxy.shouldUpgrade?.(request) ?? true),
    ...(api.explain && { explain: api.explain }),
  };
}

/** Waits for the build if a request needs it, and answers requests that the API does not handle here. Returns whether it has answered. */
async function answered(request: IncomingMessage, response: ServerResponse, options: FrontOptions): Promise<boolean> {
  const target = ownTarget(request.url ?? '/');
  request.url = target;
  if (request.method !== 'POST') return false;
  if (deletesService(target)) {
    sendError(response, 'Forbidden', 'The development server has one service, which cannot be deleted');
    return true;
  }
  if (!spawns(target)) return false;
  const gone = new AbortController();
  response.once('close', () => gone.abort(new Error('The client has disconnected')));
  const { signal } = gone;
  try {
    const problem = await options.imageProblem(AbortSignal.any([signal, options.stopping]));
    if (problem !== undefined) {
      sendError(response, 'NoImage', problem);
      return true;
    }
    if (!target.startsWith('/v2/')) return false;
    await relayConnect(request, response, { url: `${options.url}${target}`, token: options.token, signal });
  } catch (error) {
    if (signal.aborted) return true;
    if (!options.stopping.aborted) throw error;
    sendError(response, 'Unavailable', 'The development server stops');
  }
  return true;
}

/** Whether a request belongs to a session: its host is `<label>.localhost`, or its path begins with a connection token. */
function isSession({ headers, url = '/' }: IncomingMessage): boolean {
  if (hostName(headers.host)?.endsWith('.localhost')) return true;
  return connectionTokenPattern.test(/^\/([^/?]*)/.exec(url)?.[1] ?? '');
}

/**
 * Whether a request needs no access token. A page on the internet can send requests to this machine: browsers mark them with
 * `Sec-Fetch-Site`. With DNS rebinding, such a page can also use its own host name for this machine, which the `Host` header shows.
 */
function isTrusted({ headers }: IncomingMessage, host: string): boolean {
  if (headers['sec-fetch-site'] === 'cross-site') return false;
  const name = hostName(headers.host);
  if (name === undefined) return false;
  return name === 'localhost' || name === host || name === hostOfContainers || isIP(name.replace(/^\[|\]$/g, '')) > 0;
}

function hostName(host: string | undefined): string | undefined {
  return /^(\[[^\]]*\]|[^:]+)(?::\d+)?$/.exec(host ?? '')?.[1]?.toLowerCase();
}
