/** TLS of the listeners for clients: certificates in files, and what clients without TLS get. */
import { optionalWhole, whole, wordList } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';
import type { PairFiles } from '../../core/tls/certificate-files.ts';

const absolutePath = /^\/[^,]+$/;

/** A browser that comes every day never uses plain HTTP again, and a host that gives up TLS can be reached after a day. */
const defaultHstsSeconds = 24 * 3600;

/** What the lists of browsers ask for at most: two years. */
const maxHstsSeconds = 2 * 365 * 24 * 3600;

const pathsMessage = 'Use absolute paths, separated by commas';

export const tlsSettings = {
  tlsCertificateFiles: {
    variable: 'BERTH_TLS_CERTIFICATE_FILES',
    schema: wordList(absolutePath, pathsMessage),
    defaultText: 'none: the listeners speak plain HTTP',
    help: 'Files with certificates, as PEM, the server’s own certificate first in each: API, registry and proxy then speak TLS, and the proxy HTTP/2, too. Clients get the first certificate that holds for the name they ask for, or else the first one. Files that change are read again within ten seconds, see [deployment](deployment.md#tls-without-a-proxy-in-front).',
  },
  tlsKeyFiles: {
    variable: 'BERTH_TLS_KEY_FILES',
    schema: wordList(absolutePath, pathsMessage),
    help: 'The files with the private keys of `BERTH_TLS_CERTIFICATE_FILES`, in the same order, as PEM without a password.',
  },
  httpPort: {
    variable: 'BERTH_HTTP_PORT',
    schema: optionalWhole({ min: 0, max: 65_535 }),
    help: 'A port for clients without TLS, such as 80: GET requests are redirected to the HTTPS URLs of API, registry, proxy and sessions, all others are refused. Needs `BERTH_TLS_CERTIFICATE_FILES`.',
  },
  hstsSeconds: {
    variable: 'BERTH_HSTS_SECONDS',
    schema: whole({ min: 0, max: maxHstsSeconds, or: defaultHstsSeconds }),
    defaultText: `${defaultHstsSeconds}, a day`,
    help: 'How long browsers that have reached the API or its dashboard by TLS use nothing but TLS with its host, on all ports of the host (`Strict-Transport-Security`). 0: the header is not sent. Only with `BERTH_TLS_CERTIFICATE_FILES`; a proxy in front decides for itself. In session URLs by host, an application may send the header for its own host.',
  },
} satisfies Record<string, Setting<unknown>>;

/** The pairs of files with certificates and keys. */
export function tlsFiles(config: {
  readonly tlsCertificateFiles: readonly string[];
  readonly tlsKeyFiles: readonly string[];
}): readonly PairFiles[] {
  const { tlsCertificateFiles, tlsKeyFiles } = config;
  return tlsCertificateFiles.map((certificateFile, i) => ({ certificateFile, keyFile: tlsKeyFiles[i] ?? '' }));
}
