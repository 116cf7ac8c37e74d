/** What both ends of a link agree on. */
import type { CommonConnectionOptions, SecureContextOptions } from 'node:tls';
import type { PlatformSecret } from '../secret/platform-secret.ts';

/** Names what the key is, so that another kind of key can be told apart one day. */
export const linkIdentity = 'berth link 1';

/**
 * TLS 1.3 alone, where a shared key always comes with a fresh key exchange (what was recorded stays unreadable if the secret
 * becomes known later) and bytes that are sent again open nothing. Both suites hash with SHA-256, as a shared key must; the
 * first is the faster one where the processor has AES, which is nearly everywhere.
 */
export const linkTerms = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256',
} as const satisfies SecureContextOptions & CommonConnectionOptions;

/** A peer that vanished without a word is noticed within half a minute: Node asks ten times, a second apart. */
export const linkSocketTerms = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 } as const;

/** The key of links. Whoever has it is a process of the platform. */
export function linkKey(secret: PlatformSecret): Buffer {
  return secret.keyFor('link');
}
