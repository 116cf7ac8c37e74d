/**
 * How a client sees a session. In the host form, the session has an origin of its own, and its paths are those of the application. In
 * the path form, it has one directory of the proxy's origin, which the application does not know: it sees the root of a host. These
 * functions translate between the two. They are pure, and bodies are never translated.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { UrlForm } from '../contract/connect.ts';
import type { BackendAddress } from '../model/backend.ts';

/** The URL of a session, as the client that sent a request sees it. */
export interface SessionView {
  /** The path of the session, without a slash at the end: `/<token>`, or nothing in the host form. */
  readonly prefix: string;
  /** The hosts that the application may treat as its own: the client's `Host`, with its port, and the host that a load balancer forwards. */
  readonly hosts: readonly string[];
  /** The port on which the application listens. */
  readonly port: number;
}

/** How the client that sent a request sees its session. */
export function sessionView(
  { token, form, address }: { readonly token: string; readonly form: UrlForm; readonly address: BackendAddress },
  headers: IncomingHttpHeaders,
  behindLoadBalancer: boolean,
): SessionView {
  const forwarded = behindLoadBalancer ? headers['x-forwarded-host'] : undefined;
  return {
    prefix: form === 'host' ? '' : `/${token}`,
    hosts: [headers.host ?? '', String(forwarded ?? '')].filter(Boolean),
    port: address.targetPort ?? address.port,
  };
}

/** The characters that a browser reads as a slash at the start of a reference. */
const slash = /^[/\\]/;

/** An absolute HTTP URL, or one without a scheme: its scheme, its host, and the rest. */
const absolute = /^(https?:)?[/\\]{2}([^/\\?#]*)(.*)$/is;

/** A dot segment, in every spelling that browsers accept. */
const dotSegment = /(?:^|[/\\])(?:\.|%2e){1,2}(?:$|[/\\?#])/i;

/** The target in a `Refresh` header, with or without quotes. */
const refreshTarget = /^(\s*[\d.]+\s*[;,]\s*(?:url\s*=\s*)?(["']?))([^"'].*)$/is;

/**
 * Maps a reference of an application to the client's view: paths of the application, and URLs of the session's own host, become paths
 * below the prefix. Relative references and URLs of other hosts stay as they are. nginx and others put the port on which they listen
 * into redirects: such a URL belongs to the session, too. In the host form, any other port of the session's host is the application's.
 */
export function mapReference(reference: string, view: SessionView): string {
  const { prefix, hosts } = view;
  const [, scheme = '', named, rest = ''] = absolute.exec(reference) ?? [];
  if (named === undefined) return prefix !== '' && slash.test(reference) ? below(prefix, reference) : reference;
  const namesOwnPort = isOwnPort(named, scheme, view);
  if (prefix === '') return namesOwnPort || isOtherPort(named, hosts) ? pathOf(reference, rest) : reference;
  const isOwn = namesOwnPort || hosts.some((host) => isSameHost(named, host));
  return isOwn ? below(prefix, slash.test(rest) ? rest : `/${rest}`) : reference;
}

/** Maps the targets in a `Link` header: the texts between angle brackets, outside of quotes. */
export function mapLinks(value: string, view: SessionView): string {
  let mapped = '';
  let at = 0;
  for (;;) {
    const from = nextOf(value, '<"', at);
    const to = from < 0 ? -1 : endOfPart(value, from);
    // One pass over the text, because a backend may send any number of brackets and quotes.
    if (to < 0) return mapped + value.slice(at);
    const part = value.slice(from + 1, to);
    mapped += value.slice(at, from + 1) + (value[from] === '<' ? mapReference(part, view) : part) + value[to];
    at = to + 1;
  }
}

/** The position of the first of some characters, -1 if there is none. */
function nextOf(text: string, characters: string, from: number): number {
  for (let i = from; i < text.length; i += 1) if (characters.includes(text[i] as string)) return i;
  return -1;
}

/** Where a bracket or quote that opens at a position is closed, -1 if it is not. */
function endOfPart(text: string, from: number): number {
  if (text[from] === '<') return text.indexOf('>', from);
  for (let i = from + 1; i < text.length; i += 1) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '"') return i;
  }
  return -1;
}

/** Maps the target in a `Refresh` header. */
export function mapRefresh(value: string, view: SessionView): string {
  return value.replace(refreshTarget, (_all, before: string, _quote: string, target: string) => {
    return `${before}${mapReference(target, view)}`;
  });
}

const domainAttribute = /;\s*domain\s*=[^;]*/gi;

/** Only absolute paths: with any other value, a browser limits the cookie to the path of the response, which is in the session. */
const pathAttribute = /(;[ \t]*path[ \t]*=[ \t]*)(\/[^;]*)/gi;

/**
 * Limits a cookie to the session. With `Domain`, a backend could set cookies for neighbouring hosts, and with any `Path`, for the
 * other sessions on this host.
 */
export function mapCookie(value: string, { prefix }: SessionView): string {
  const own = value.replace(domainAttribute, '');
  if (prefix === '') return own;
  return own.replace(pathAttribute, (_attribute, name: string, path: string) => `${name}${below(prefix, path)}`);
}

/** The directives of `Clear-Site-Data` for one origin. The others affect all hosts of a site: cookies, and client hints. */
const ofOrigin = /^"(?:cache|storage|executionContexts)"$/;

/** The directives of a `Clear-Site-Data` header that concern the origin of the session alone. */
export function withoutSiteWide(value: string): string {
  const directives = value.split(',').map((each) => each.trim());
  return directives.filter((each) => ofOrigin.test(each)).join(', ');
}

/** A path of the application, below the prefix. An application that knows its prefix may have put it in front already. */
function below(prefix: string, path: string): string {
  // As in the application's view, `..` does not lead above its root.
  const resolved = dotSegment.test(path) ? resolvedPath(path) : path;
  const hasPrefix = resolved.startsWith(prefix) && /^(?:[/\\?#]|$)/.test(resolved.slice(prefix.length));
  return hasPrefix ? resolved : `${prefix}${resolved}`;
}

function resolvedPath(path: string): string {
  // Several slashes at the start would name a host.
  const { pathname, search, hash } = new URL(`http://root/${path.replace(slash, '')}`);
  return `${pathname}${search}${hash}`;
}

/** The part of an absolute URL after its host, unless that would name a host itself. */
function pathOf(reference: string, rest: string): string {
  if (!slash.test(rest)) return `/${rest}`;
  return slash.test(rest.slice(1)) ? reference : rest;
}

/** Host names that a program in a container uses for itself. */
const localNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]', '0.0.0.0']);

/** Whether a host is that of the application, with the port on which it listens: under its own name, or that of the session. */
function isOwnPort(named: string, scheme: string, { hosts, port }: SessionView): boolean {
  const name = withoutPort(named);
  const digits = /:(\d+)$/.exec(named)?.[1];
  const namedPort = digits === undefined ? defaultPort(scheme) : Number(digits);
  if (namedPort !== port) return false;
  return localNames.has(name) || hosts.some((host) => withoutPort(host) === name && !isSameHost(named, host));
}

function defaultPort(scheme: string): number {
  return scheme.toLowerCase() === 'https:' ? 443 : 80;
}

function isOtherPort(named: string, hosts: readonly string[]): boolean {
  return hosts.some((host) => !isSameHost(named, host) && withoutPort(named) === withoutPort(host));
}

function withoutPort(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '');
}

function isSameHost(one: string, other: string): boolean {
  return withoutDefaultPort(one) === withoutDefaultPort(other);
}

/** An application behind TLS may name the port of either scheme. */
function withoutDefaultPort(host: string): string {
  return host.toLowerCase().replace(/:(?:80|443)?$/, '');
}
