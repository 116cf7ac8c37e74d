/** What clients without TLS get on a port of their own: browsers are redirected to HTTPS, all others are refused. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { settings } from '../config/config.ts';
import type { Config } from '../config/config.ts';
import { openListener } from './listener.ts';
import type { Listener } from './listener.ts';
import type { PlatformUrls } from './listeners.ts';

/** Opens the port, if there is one; `opening` closes it. Throws `ConfigError` with the setting to change if that is not possible. */
export async function openHttpRedirect(
  { config, urls }: { config: Config; urls: PlatformUrls },
  opening: AsyncDisposableStack,
): Promise<Listener | undefined> {
  const { host, httpPort: port } = config;
  if (port === undefined) return undefined;
  const { variable: hostVariable } = settings.host;
  const place = { host, port, hostVariable, portVariable: settings.httpPort.variable };
  const listener = opening.use(await openListener(place));
  listener.open({ handle: (request, response) => answerWithoutTls(request, response, urls) });
  return listener;
}

/** The URL with TLS for a request without; `undefined` if its host is none of the platform's: no other site can be named. */
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

/** A secret that was sent without TLS is not safe any more. The answer to all but a request for a page says so. */
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
