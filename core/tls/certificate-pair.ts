/** A certificate with its private key, checked before it is used. */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** A chain of certificates, the server's own first, and its private key, as PEM. */
export interface CertificatePair {
  readonly certificate: string;
  readonly key: string;
}

/** The names and the validity period of a certificate. */
export interface CertificateTerms {
  /** The names for which it is valid, such as `example.com` or `*.example.com`. */
  readonly names: readonly string[];
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** A pair cannot be used. The message says why, for the operator. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}

/** Checks that a pair can be used, and returns the names and validity period of its certificate. Throws `CertificateError`. */
export function checkPair({ certificate, key }: CertificatePair): CertificateTerms {
  const own = parseCertificate(certificate);
  if (!own.checkPrivateKey(parseKey(key))) throw new CertificateError('The key does not belong to the certificate');
  try {
    // Parses the whole chain, which may be cut off in the middle of a certificate.
    createSecureContext({ cert: certificate, key });
  } catch (error) {
    throw new CertificateError('The certificates after the first one cannot be read', { cause: error });
  }
  return termsOf(own);
}

/** Whether a certificate is valid for a host. */
export function isValidFor(certificate: X509Certificate, host: string): boolean {
  return certificate.checkHost(host) !== undefined;
}

function parseCertificate(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new CertificateError('The certificate cannot be read: PEM is expected, the server’s own certificate first', {
      cause: error,
    });
  }
}

function parseKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw new CertificateError('The key cannot be read: PEM without a password is expected', { cause: error });
  }
}

function termsOf(certificate: X509Certificate): CertificateTerms {
  const names = (certificate.subjectAltName ?? '')
    .split(', ')
    .flatMap((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1] ?? []);
  return { names, notBefore: certificate.validFromDate, notAfter: certificate.validToDate };
}
