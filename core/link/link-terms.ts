/** The parameters that both sides of a link use. */
import type { CommonConnectionOptions, SecureContextOptions } from 'node:tls';
import type { PlatformSecret } from '../secret/platform-secret.ts';

/** Identifies the kind of key, so that another kind can be added later. */
export const linkIdentity = 'berth link 1';

/**
 * Only TLS 1.3: there a shared key is always combined with a fresh key exchange, so that recorded traffic stays unreadable if the
 * secret leaks later, and replayed bytes open no link. Both suites use SHA-256, as shared keys require. The first is faster on
 * processors with AES instructions, which are nearly all.
 */
export const linkTerms = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256',
} as const satisfies SecureContextOptions & CommonConnectionOptions;

/** Detects a peer that vanished within half a minute: after 15 s of silence, Node sends ten probes, a second apart. */
export const linkSocketTerms = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 } as const;

/** The key of links. It identifies processes of the platform. */
export function linkKey(secret: PlatformSecret): Buffer {
  return secret.keyFor('link');
}
