/** Chooses the certificate of each TLS connection by the name that the client asks for. Certificates can be replaced at any time. */
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { SecureContext, SecureContextOptions, Server } from 'node:tls';
import { isValidFor } from './certificate-pair.ts';
import type { CertificatePair } from './certificate-pair.ts';

/**
 * Supported by every browser and container engine of the last ten years, and nothing weaker: TLS 1.2 with forward secrecy and
 * authenticated encryption (https://ssl-config.mozilla.org, "intermediate", without DHE), and TLS 1.3.
 */
const terms = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
} satisfies SecureContextOptions;

interface Entry {
  readonly certificate: X509Certificate;
  readonly options: SecureContextOptions;
  readonly context: SecureContext;
}

/** The certificates of a thread. Open connections keep their certificate when it is replaced. */
export class SecureContexts {
  #entries: readonly Entry[];
  readonly #servers = new Set<Server>();

  /** The pairs must have been checked. The first one is for clients that name no host, or a host without a certificate. */
  constructor(pairs: readonly CertificatePair[]) {
    this.#entries = pairs.map(entryOf);
  }

  /** Uses other pairs for new connections. */
  replace(pairs: readonly CertificatePair[]): void {
    this.#entries = pairs.map(entryOf);
    for (const server of this.#servers) this.#setDefault(server);
  }

  /** Options for a new server, which `follow` then provides with its certificates. */
  get serverOptions() {
    return {
      ...this.#first.options,
      SNICallback: (name: string, callback: (error: Error | null, context: SecureContext) => void) =>
        callback(null, this.#choose(name).context),
    };
  }

  /** Keeps the default certificate of a server up to date, until it is closed. */
  follow(server: Server): void {
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
    this.#setDefault(server);
  }

  get #first(): Entry {
    const [first] = this.#entries;
    if (!first) throw new Error('TLS needs a certificate');
    return first;
  }

  #choose(name: string): Entry {
    return this.#entries.find(({ certificate }) => isValidFor(certificate, name)) ?? this.#first;
  }

  #setDefault(server: Server): void {
    server.setSecureContext(this.#first.options);
  }
}

function entryOf({ certificate, key }: CertificatePair): Entry {
  const options = { ...terms, cert: certificate, key };
  return { certificate: new X509Certificate(certificate), options, context: createSecureContext(options) };
}
