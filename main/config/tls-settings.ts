/** TLS of the listeners for clients: certificates in files, and the answer to clients without TLS. */
import { optionalWhole, whole, wordList } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';
import type { PairFiles } from '../../core/tls/certificate-files.ts';

const absolutePath = /^\/[^,]+$/;

/** A browser that is used daily never uses plain HTTP again, and a host that turns TLS off is reachable after a day. */
const defaultHstsSeconds = 24 * 3600;

/** The longest time that the preload lists of browsers require: two years. */
const maxHstsSeconds = 2 * 365 * 24 * 3600;

const pathsMessage = 'Use absolute paths, separated by commas';

export const tlsSettings = {
  tlsCertificateFiles: {
    variable: 'BERTH_TLS_CERTIFICATE_FILES',
    schema: wordList(absolutePath, pathsMessage),
    defaultText: 'none: the listeners speak plain HTTP',
    help: 'PEM files with certificates, the server’s own certificate first in each. API, registry and proxy then speak TLS, and the proxy HTTP/2, too. A client gets the first certificate that is valid for the name it requests, otherwise the first one. Changed files are read again within ten seconds, see [deployment](deployment.md#tls-without-a-proxy-in-front).',
  },
  tlsKeyFiles: {
    variable: 'BERTH_TLS_KEY_FILES',
    schema: wordList(absolutePath, pathsMessage),
    help: 'The files with the private keys of `BERTH_TLS_CERTIFICATE_FILES`, in the same order, as PEM without a password.',
  },
  httpPort: {
    variable: 'BERTH_HTTP_PORT',
    schema: optionalWhole({ min: 0, max: 65_535 }),
    help: 'A port for clients without TLS, such as 80: GET requests are redirected to the HTTPS URLs of API, registry, proxy and sessions, all other requests are refused. Needs `BERTH_TLS_CERTIFICATE_FILES`.',
  },
  hstsSeconds: {
    variable: 'BERTH_HSTS_SECONDS',
    schema: whole({ min: 0, max: maxHstsSeconds, or: defaultHstsSeconds }),
    defaultText: `${defaultHstsSeconds}, a day`,
    help: 'How long browsers that have reached the API or one of its pages over TLS use only TLS for its host, on all ports (`Strict-Transport-Security`). 0: the header is not sent. Only with `BERTH_TLS_CERTIFICATE_FILES`; a TLS proxy in front sends its own header. In session URLs by host, an application may send the header for its own host.',
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
