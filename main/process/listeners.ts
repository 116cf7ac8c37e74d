/** The listeners of a process. They open before its components, which need each other's addresses. */
import { settings } from '../config/config.ts';
import type { SecureContexts } from '../../core/tls/secure-contexts.ts';
import type { Config } from '../config/config.ts';
import type { ListenAddress } from './listen-problem.ts';
import { hostPort, openListener } from './listener.ts';
import type { Listener, ListenerOptions } from './listener.ts';
import type { Role, Roles } from '../config/roles.ts';

/** The addresses of the platform. */
export interface PlatformUrls {
  readonly api: string;
  /** Host and port, as in the name of an image. */
  readonly registry: string;
  readonly proxy: string;
  /** The form of session URLs by host, with `*` for the label. Absent without a session domain. */
  readonly sessions?: string;
  readonly operations: string;
}

/** The listeners of a process, except the proxy's, which the proxy opens itself. */
export interface Listeners {
  readonly api: Listener | undefined;
  readonly registry: Listener | undefined;
  readonly operations: Listener;
}

/** Twice the default of Node.js: podman requests up to a thousand ranges of a large layer at once, which take 20 KiB. */
const registryHeadBytes = 32 * 1024;

/** Listens on the ports of the roles of this process; `opening` closes them. Throws `ConfigError` with the setting to change when a port is in use. */
export async function openListeners(
  { config, roles, contexts }: { config: Config; roles: Roles; contexts?: SecureContexts | undefined },
  opening: AsyncDisposableStack,
): Promise<Listeners> {
  const tls = contexts && { contexts, http2: false };
  const open = async (role: Role, port: PortSetting, options: ListenerOptions = {}) =>
    roles.has(role) ? opening.use(await openListener(addressOf(config, 'host', port), { tls, ...options })) : undefined;
  const registry = await open('registry', 'registryPort', { maxHeaderSize: registryHeadBytes });
  // Only the API sends Strict-Transport-Security: it serves pages. The hosts of sessions belong to their applications.
  const api = await open('api', 'apiPort', { tls: tls && { ...tls, hstsSeconds: config.hstsSeconds } });
  const operations = opening.use(await openListener(addressOf(config, 'operationsHost', 'operationsPort')));
  return { api, registry, operations };
}

/** The URLs of the platform. URLs of components in other processes come from the configuration. */
export function urlsOf(config: Config, { api, registry, operations }: Listeners, proxyHostPort?: string): PlatformUrls {
  const at = (own: string | undefined, port: number) => own ?? hostPort(config.host, port);
  const scheme = config.tlsCertificateFiles.length > 0 ? 'https' : 'http';
  const proxyUrl = config.proxyUrl ?? `${scheme}://${at(proxyHostPort, config.proxyPort)}`;
  return {
    api: config.apiUrl ?? `${scheme}://${at(api?.hostPort, config.apiPort)}`,
    registry: config.registryUrl ? new URL(config.registryUrl).host : at(registry?.hostPort, config.registryPort),
    proxy: proxyUrl,
    ...(config.sessionDomain !== undefined && { sessions: sessionsUrl(proxyUrl, config.sessionDomain) }),
    operations: `http://${operations.hostPort}`,
  };
}

/** The form of session URLs below a domain, with the scheme and port of the proxy's URL. */
function sessionsUrl(proxyUrl: string, domain: string): string {
  const { protocol, port } = new URL(proxyUrl);
  return `${protocol}//*.${domain}${port && `:${port}`}`;
}

type PortSetting = 'apiPort' | 'registryPort' | 'proxyPort' | 'operationsPort' | 'gatewayPort';

type HostSetting = 'host' | 'operationsHost' | 'gatewayHost';

/** The address of a listener, from two settings. */
export function addressOf(config: Config, host: HostSetting, port: PortSetting): ListenAddress {
  return {
    host: config[host],
    port: config[port],
    hostVariable: settings[host].variable,
    portVariable: settings[port].variable,
  };
}
