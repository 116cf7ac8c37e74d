/** Where a plain request goes, and the head with which it is sent. */
import { hasBearerToken } from '../bearer-token.ts';
import { parseConnectionUrl, redirectOf } from '../connection-url.ts';
import type { Address, Lookup, Reachable } from '../lookup.ts';
import { addedHeaders, forwardedValue } from '../request-headers.ts';
import { sessionView } from '../session-view.ts';
import type { SessionView } from '../session-view.ts';
import type { PlainRequest } from './request-head.ts';

/** The backend of a request. */
export interface Target {
  readonly backend: string;
  readonly address: Address;
  readonly view: SessionView;
  /** The head for the backend. */
  readonly head: string;
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

/** What all requests of a client to one session have in common. */
interface Session extends Reachable {
  readonly token: string;
  readonly host: string;
  readonly view: SessionView;
  readonly addedLines: string;
}

/** Finds the targets of the requests of one connection. Remembers the last session, because nearly all requests are for the same. */
export class Targets {
  readonly #deps: TargetDeps;
  readonly #client: Client;
  #last: Session | undefined;

  constructor(deps: TargetDeps, client: Client) {
    this.#deps = deps;
    this.#client = client;
  }

  /**
   * The target of a request whose backend is reachable; a promise if that must be looked up. `undefined` for any other request,
   * which is not plain: it is answered with an error or a redirect, or held until its backend is ready.
   * Rejects with `unavailable` if the store does not answer.
   */
  of(request: PlainRequest): Target | undefined | Promise<Target | undefined> {
    const { lookup, sessionDomain } = this.#deps;
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
    return location.state === 'reachable' ? { route, address: location.address } : undefined;
  }

  #targetOf(
    request: PlainRequest,
    { token, form, rest }: NonNullable<ReturnType<typeof parseConnectionUrl>>,
    reachable: Reachable,
  ): Target | undefined {
    const { route, address } = reachable;
    if (!hasBearerToken(request.headers.authorization, route)) return undefined;
    const { addedLines, view } = this.#sessionOf(request, { token, form }, reachable);
    let lines = request.lines;
    for (const { rule, name, value } of request.checked) {
      const forwarded = forwardedValue(rule, value, { token, route });
      if (forwarded !== undefined) lines += `${name}: ${forwarded}\r\n`;
    }
    const head = `${request.method} ${rest} HTTP/1.1\r\n${lines}${addedLines}connection: keep-alive\r\n\r\n`;
    return { backend: route.backend, address, view, head };
  }

  #sessionOf(
    { headers }: PlainRequest,
    url: { readonly token: string; readonly form: 'host' | 'path' },
    { route, address }: Reachable,
  ): Session {
    const { secretFor, behindLoadBalancer } = this.#deps;
    const { host = '' } = headers;
    const last = this.#last;
    if (last?.route === route && last.token === url.token && last.host === host && !behindLoadBalancer) return last;
    const view = sessionView({ ...url, port: address.port }, headers, behindLoadBalancer);
    const secret = secretFor(url.token);
    const added = addedHeaders({ headers, ...this.#client }, { route, view, secret, behindLoadBalancer });
    const addedLines = added.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    this.#last = { token: url.token, host, route, address, view, addedLines };
    return this.#last;
  }
}
