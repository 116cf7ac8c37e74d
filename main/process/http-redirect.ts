/** The port for clients without TLS: redirects browsers to HTTPS, and refuses all other requests. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { settings } from '../config/config.ts';
import type { Config } from '../config/config.ts';
import { openListener } from './listener.ts';
import type { Listener } from './listener.ts';
import type { PlatformUrls } from './listeners.ts';

/** Opens the port, if one is configured; `opening` closes it. Throws `ConfigError` with the setting to change if it cannot listen. */
export async function openHttpRedirect(
  { config, urls }: { config: Config; urls: PlatformUrls },
  opening: AsyncDisposableStack,
): Promise<Listener | undefined> {
  const { host, httpPort: port } = config;
  if (port === undefined) return undefined;
  const { variable: hostVariable } = settings.host;
  const address = { host, port, hostVariable, portVariable: settings.httpPort.variable };
  const listener = opening.use(await openListener(address));
  listener.open({ handle: (request, response) => answerWithoutTls(request, response, urls) });
  return listener;
}

/** The HTTPS URL for a plain HTTP request; `undefined` if its host is not one of the platform's, so that this is no open redirect. */
export function secureUrl(host: string, target: string, urls: PlatformUrls): string | undefined {
  const name = host.toLowerCase().replace(/:\d+$/, '');
  if (!target.startsWith('/') || !/^[a-z0-9.-]+$/.test(name)) return undefined;
  const sessions = urls.sessions?.replace('*', name.slice(0, name.indexOf('.')));
  for (const url of [urls.api, `https://${urls.registry}`, urls.proxy, sessions]) {
    if (url === undefined) continue;
    const { protocol, hostname, origin } = new URL(url);
    if (protocol === 'https:' && hostname === name) return `${origin}${target}`;
  }
  return undefined;
}

/** Redirects requests for pages. Refuses all others, because they may contain secrets, which were then sent unencrypted. */
function answerWithoutTls(
  { method, headers, url = '' }: IncomingMessage,
  response: ServerResponse,
  urls: PlatformUrls,
) {
  const location = secureUrl(headers.host ?? '', url, urls);
  const isPage = (method === 'GET' || method === 'HEAD') && headers.authorization === undefined;
  const common = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' };
  if (location !== undefined && isPage) {
    response.writeHead(308, { ...common, location, 'content-length': 0 }).end();
    return;
  }
  response.writeHead(location === undefined ? 404 : 403, { ...common, 'content-type': 'text/plain; charset=utf-8' });
  response.end(location === undefined ? 'There is no such host here\n' : 'Use https: this port speaks no TLS\n');
}
