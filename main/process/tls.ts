/** The TLS certificates of a process. */
import { ConfigError } from '../../core/config/settings.ts';
import { CertificateError } from '../../core/tls/certificate-pair.ts';
import { CertificateFiles } from '../../core/tls/certificate-files.ts';
import { SecureContexts } from '../../core/tls/secure-contexts.ts';
import type { ComponentDeps } from '../drivers.ts';
import { settings } from '../config/config.ts';
import { tlsFiles } from '../config/tls-settings.ts';

/** The certificates of a process. */
export interface Tls {
  readonly files: CertificateFiles;
  /** For the listeners of this thread. */
  readonly contexts: SecureContexts;
}

/** Reads the certificates, and reads them again when their files change, until `opening` is closed. Throws `ConfigError` if one is unusable. */
export async function openTls(
  { config, clock, log, metrics }: Pick<ComponentDeps, 'config' | 'clock' | 'log' | 'metrics'>,
  opening: AsyncDisposableStack,
): Promise<Tls | undefined> {
  const pairs = tlsFiles(config);
  if (pairs.length === 0) return undefined;
  try {
    const files = opening.use(await CertificateFiles.open(pairs, { clock, log, metrics }));
    const contexts = new SecureContexts(files.pairs);
    files.onChange((changed) => contexts.replace(changed));
    return { files, contexts };
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    throw new ConfigError(`${settings.tlsCertificateFiles.variable}: ${error.message}`, { cause: error });
  }
}
