/** The configuration of a Berth process. This file and the files that it spreads in list all variables. */
import { z } from 'zod';
import { urlForms } from '../../contract/connect.ts';
import { accountName, clusterName } from '../../contract/names.ts';
import {
  oneOf,
  optionalText,
  optionalWhole,
  optionalUrl,
  port,
  readSettings,
  text,
  whole,
  yesOrNo,
} from '../../core/config/settings.ts';
import type { Setting, SettingProblem, SettingValues } from '../../core/config/settings.ts';
import { adminSettings } from './admin-settings.ts';
import { backendSettings } from './backend-settings.ts';
import { driverSettings } from './driver-settings.ts';
import { proxySettings } from './proxy-settings.ts';
import { registrySettings } from './registry-settings.ts';
import { retentionSettings } from './retention-settings.ts';
import { tlsSettings } from './tls-settings.ts';

/** Labels of letters, digits and hyphens. */
const domainPattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const settings = {
  dataFolder: {
    variable: 'BERTH_DATA_FOLDER',
    schema: text('.berth'),
    defaultText: '`.berth` in the working directory',
    help: 'The folder with all data: documents, images, the platform secret. Only one process may own it at a time.',
  },
  secretFile: {
    variable: 'BERTH_SECRET_FILE',
    schema: optionalText(z.string().startsWith('/', 'Use an absolute path')),
    defaultText: '`secret` in the data folder, created at the first start',
    help: 'A file with the secret that all processes of a platform share: at least 32 random bytes, in base64url.',
  },
  ...driverSettings,
  host: {
    variable: 'BERTH_LISTEN_HOST',
    schema: text('127.0.0.1'),
    help: 'The address on which API, registry and proxy listen. Before you open it to other machines, set `BERTH_TLS_CERTIFICATE_FILES`, or put a TLS proxy in front.',
  },
  apiPort: {
    variable: 'BERTH_API_PORT',
    schema: port(7100),
    help: 'Port of the API. 0 selects a free port.',
  },
  registryPort: {
    variable: 'BERTH_REGISTRY_PORT',
    schema: port(7101),
    help: 'Port of the image registry.',
  },
  proxyPort: {
    variable: 'BERTH_PROXY_PORT',
    schema: port(7102),
    help: 'Port of the proxy, through which clients reach sessions.',
  },
  operationsPort: {
    variable: 'BERTH_OPERATIONS_PORT',
    schema: port(7103),
    help: 'Port of `/healthz`, `/readyz` and `/metrics`. Commands such as `berth collect` find the running process at this port.',
  },
  operationsHost: {
    variable: 'BERTH_OPERATIONS_HOST',
    schema: text('127.0.0.1'),
    help: 'The address on which `/healthz`, `/readyz` and `/metrics` listen.',
  },
  operationsTokenFile: {
    variable: 'BERTH_OPERATIONS_TOKEN_FILE',
    schema: optionalText(z.string().startsWith('/', 'Use an absolute path')),
    defaultText: 'none: other machines can only see whether the process is ready',
    help: 'A file with the token that clients on other machines need for `/metrics` and for the reasons in `/readyz`: 32 characters or more.',
  },
  advertisedHost: {
    variable: 'BERTH_ADVERTISED_HOST',
    schema: optionalText(z.string().regex(/^[\w.:-]+$/, 'Use a host name or an address')),
    defaultText:
      'none: proxy and API run on the same machine, and the gateway listens for this machine only, on a free port',
    help: 'The name or address by which proxies and APIs on other machines reach this node’s gateway.',
  },
  gatewayHost: {
    variable: 'BERTH_GATEWAY_HOST',
    schema: text('0.0.0.0'),
    help: 'The address on which the node’s gateway listens when `BERTH_ADVERTISED_HOST` is set.',
  },
  gatewayPort: {
    variable: 'BERTH_GATEWAY_PORT',
    schema: port(7104),
    help: 'Port of the node’s gateway for other machines. The gateway accepts only processes that have the platform’s secret.',
  },
  registryPullHost: {
    variable: 'BERTH_REGISTRY_PULL_HOST',
    schema: optionalText(z.string().regex(/^[\w.-]+(?::\d+)?$/, 'Use host or host:port')),
    defaultText: 'the address at which clients reach the registry',
    help: 'Host and port from which this node’s Docker Engine pulls images, if they differ from those for clients.',
  },
  apiUrl: {
    variable: 'BERTH_API_URL',
    schema: optionalUrl(),
    defaultText: 'host and port of the API',
    help: 'The URL at which clients reach the API, if it differs from host and port.',
  },
  registryUrl: {
    variable: 'BERTH_REGISTRY_URL',
    schema: optionalUrl(),
    defaultText: 'host and port of the registry',
    help: 'The URL at which clients reach the registry, if it differs from host and port.',
  },
  proxyUrl: {
    variable: 'BERTH_PROXY_URL',
    schema: optionalUrl(),
    defaultText: 'host and port of the proxy',
    help: 'The URL at which browsers reach the proxy, if it differs from host and port.',
  },
  sessionDomain: {
    variable: 'BERTH_SESSION_DOMAIN',
    schema: optionalText(
      z.string().regex(domainPattern, 'Use a domain name in lower case, such as sessions.example.com'),
    ),
    defaultText: 'none; `localhost` on `npm start` if only this machine reaches the proxy',
    help: 'The domain of session URLs by host, `<label>.<domain>`, with the scheme and the port of the proxy’s URL. Its wildcard name and certificate must lead to the proxy, see [session URLs](session-urls.md).',
  },
  urlForm: {
    variable: 'BERTH_URL_FORM',
    schema: z.enum(urlForms, `Use one of ${urlForms.join(', ')}`).optional(),
    defaultText: '`host` if `BERTH_SESSION_DOMAIN` is set, else `path`',
    help: 'The form of connection URLs: `host` (`<label>.<session domain>`) or `path` (`<proxy>/<token>/`). A service or a connect request may choose the other one.',
  },
  behindLoadBalancer: {
    variable: 'BERTH_BEHIND_LOAD_BALANCER',
    schema: yesOrNo(false),
    help: 'Whether a TLS proxy or load balancer in front of API, registry and proxy sets `X-Forwarded-*`. `yes`: the proxy keeps these headers, and API and registry identify clients by them. `no`: they are dropped as forged.',
  },
  ...tlsSettings,
  ...proxySettings,
  ...registrySettings,
  logLevel: {
    variable: 'BERTH_LOG_LEVEL',
    schema: oneOf(['debug', 'info', 'warn', 'error', 'silent'], 'info'),
    help: 'The lowest severity of log lines that are written (to standard error, as JSON).',
  },
  account: {
    variable: 'BERTH_FIRST_ACCOUNT',
    schema: text('home', accountName),
    help: 'Name of the account that the first start creates.',
  },
  ...adminSettings,
  node: {
    variable: 'BERTH_NODE',
    schema: optionalText(
      z.string().regex(/^[a-z0-9][a-z0-9-]{1,40}$/, 'Use 2 to 41 lower-case letters, digits, hyphens'),
    ),
    defaultText: 'a random name, kept in the data folder',
    help: 'Name of this node. It must stay the same across restarts and be unique among nodes.',
  },
  cluster: {
    variable: 'BERTH_CLUSTER',
    schema: text('default', clusterName),
    help: 'The cluster that this node belongs to.',
  },
  maxBackends: {
    variable: 'BERTH_MAX_BACKENDS',
    schema: whole({ min: 0, max: 1_000_000, or: 0 }),
    defaultText: '`0` (no limit)',
    help: 'How many backends may run on this node. A backend that does not fit waits for another node or for free capacity. 0: no limit.',
  },
  nodeMemoryBytes: {
    variable: 'BERTH_NODE_MEMORY_BYTES',
    schema: optionalWhole({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    defaultText: 'twice the memory of the machine',
    help: 'The highest sum of the memory limits of this node’s backends. A backend that does not fit waits for another node or for free capacity. 0: no limit.',
  },
  ...backendSettings,
  ...retentionSettings,
  dockerHost: {
    variable: 'DOCKER_HOST',
    schema: optionalText(z.string().regex(/^unix:\/\/\//, 'Only unix:// sockets are supported')),
    defaultText: '`unix:///var/run/docker.sock`',
    help: 'The socket of this node’s Docker Engine.',
  },
} satisfies Record<string, Setting<unknown>>;

export type Config = SettingValues<typeof settings>;

/** Reads the configuration from an environment. Throws one `ConfigError` with all problems. */
export function loadConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const config = readSettings(settings, environment, { prefix: 'BERTH_', check: missingSettings });
  return { ...config, ...loweredDefaults(config) };
}

/** Finds settings that other settings need. */
function missingSettings(config: Partial<Config>): SettingProblem[] {
  const [certificates, keys] = [config.tlsCertificateFiles?.length ?? 0, config.tlsKeyFiles?.length ?? 0];
  const needs = [
    need('mongodbUrl', 'BERTH_STORE=mongodb', config.store === 'mongodb' && !config.mongodbUrl),
    need('mongodbUrl', 'BERTH_BLOBS=gridfs', config.blobs === 'gridfs' && !config.mongodbUrl),
    need('sessionDomain', 'BERTH_URL_FORM=host', config.urlForm === 'host' && config.sessionDomain === undefined),
    need('tlsKeyFiles', 'BERTH_TLS_CERTIFICATE_FILES, with one file for each', certificates > keys),
    need('tlsCertificateFiles', 'BERTH_TLS_KEY_FILES, with one file for each', keys > certificates),
    need('tlsCertificateFiles', 'BERTH_HTTP_PORT', config.httpPort !== undefined && certificates === 0),
    need('redisUrl', 'BERTH_QUEUE=bullmq', config.queue === 'bullmq' && !config.redisUrl),
    need('redisUrl', 'BERTH_BUS=redis', config.bus === 'redis' && !config.redisUrl),
  ];
  return needs.flat();
}

/** The defaults, at most their limits: an operator may set only a limit. */
function loweredDefaults(
  config: Config,
): Pick<Config, 'defaultMaxIdleSeconds' | 'defaultLifetimeSeconds' | 'defaultMemoryBytes'> {
  return {
    defaultMaxIdleSeconds: Math.min(config.defaultMaxIdleSeconds, config.maxIdleSecondsLimit),
    defaultLifetimeSeconds: Math.min(config.defaultLifetimeSeconds, config.lifetimeSecondsLimit),
    defaultMemoryBytes: Math.min(config.defaultMemoryBytes, config.memoryBytesLimit),
  };
}

/** Reports a missing setting that another setting needs. */
function need(name: keyof typeof settings, purpose: string, isMissing: boolean): SettingProblem[] {
  return isMissing ? [{ variable: settings[name].variable, message: `Needed for ${purpose}` }] : [];
}
