/** Finds the backend of a plain request, and makes the head for the backend. */
import { hasBearerToken } from '../bearer-token.ts';
import { parseConnectionUrl, redirectOf } from '../connection-url.ts';
import type { ConnectionUrl } from '../connection-url.ts';
import type { Address, Lookup, Reachable } from '../lookup.ts';
import { addedHeaders, forwardedValue } from '../request-headers.ts';
import { sessionView } from '../session-view.ts';
import { AnswerHeads } from './answer-heads.ts';
import type { PlainRequest } from './request-head.ts';

/** The backend of a request. */
export interface Target {
  readonly backend: string;
  readonly service: string | undefined;
  readonly address: Address;
  /** The head for the backend. */
  readonly head: string;
  readonly answers: AnswerHeads;
}

export interface TargetDeps {
  readonly lookup: Lookup;
  readonly secretFor: (connectionToken: string) => string;
  readonly behindLoadBalancer: boolean;
  readonly sessionDomain: string | undefined;
}

/** The client of a connection. */
interface Client {
  readonly remoteAddress: string | undefined;
  readonly isEncrypted: boolean;
}

/** The common part of all requests to one session with the same headers. */
interface Session {
  readonly headers: PlainRequest['headers'];
  readonly reachable: Reachable;
  readonly service: string | undefined;
  readonly answers: AnswerHeads;
  /** The start of their targets, and the length of the part that the backend does not get. */
  readonly start: string;
  readonly cut: number;
  /** Their head for the backend, after the target. */
  readonly afterTarget: string;
  /** The last request. */
  last: { readonly request: PlainRequest; readonly target: Target } | undefined;
}

/** Finds the targets of the requests of one connection. Caches the last session, because nearly all requests are for the same one. */
export class Targets {
  readonly #deps: TargetDeps;
  readonly #client: Client;
  #last: Session | undefined;

  constructor(deps: TargetDeps, client: Client) {
    this.#deps = deps;
    this.#client = client;
  }

  /**
   * The target of a request whose backend is reachable; a promise if it must be looked up. `undefined` for any other request: the
   * general path answers it with an error or a redirect, or holds it until its backend is ready.
   * Rejects with `unavailable` if the store does not answer.
   */
  of(request: PlainRequest, nowMs: number): Target | undefined | Promise<Target | undefined> {
    const { lookup, sessionDomain } = this.#deps;
    const last = this.#last;
    if (last?.headers === request.headers && lookup.isCurrent(last.reachable, nowMs)) {
      if (last.last?.request === request) return last.last.target;
      if (request.target.startsWith(last.start)) return targetIn(last, request);
    }
    const { host } = request.headers;
    const url = parseConnectionUrl(request.target, { host, sessionDomain });
    if (!url || redirectOf(url) !== undefined) return undefined;
    const known = lookup.known(url.token);
    if (known) return this.#targetOf(request, url, known);
    return this.#lookUp(url.token).then((found) => found && this.#targetOf(request, url, found));
  }

  async #lookUp(token: string): Promise<Reachable | undefined> {
    const { lookup } = this.#deps;
    const route = await lookup.route(token);
    if (!route) return undefined;
    const location = await lookup.location(route.backend);
    if (location.state !== 'reachable') return undefined;
    return lookup.known(token) ?? { route, address: location.address };
  }

  #targetOf(request: PlainRequest, url: ConnectionUrl, reachable: Reachable): Target | undefined {
    const { lookup, secretFor, behindLoadBalancer } = this.#deps;
    const { headers } = request;
    const { route, address } = reachable;
    const { token } = url;
    if (!hasBearerToken(headers.authorization, route)) return undefined;
    const view = sessionView({ ...url, address }, headers, behindLoadBalancer);
    let { lines } = request;
    for (const { rule, name, value } of request.checked) {
      const forwarded = forwardedValue(rule, value, { token, route });
      if (forwarded !== undefined) lines += `${name}: ${forwarded}\r\n`;
    }
    const about = { route, view, secret: secretFor(token), behindLoadBalancer };
    for (const [name, value] of addedHeaders({ headers, ...this.#client }, about)) lines += `${name}: ${value}\r\n`;
    // A flat copy: V8 would copy joined strings part by part with each request.
    const afterTarget = Buffer.from(` HTTP/1.1\r\n${lines}connection: keep-alive\r\n\r\n`, 'latin1').toString('latin1');
    const start = `${view.prefix}/`;
    const service = lookup.serviceOf(route.backend);
    const answers = new AnswerHeads(view);
    this.#last = { headers, reachable, service, answers, start, cut: view.prefix.length, afterTarget, last: undefined };
    return targetIn(this.#last, request);
  }
}

function targetIn(session: Session, request: PlainRequest): Target {
  const { reachable, service, answers, cut, afterTarget } = session;
  const head = `${request.method} ${request.target.slice(cut)}${afterTarget}`;
  const target = { backend: reachable.route.backend, service, address: reachable.address, head, answers };
  session.last = { request, target };
  return target;
}
