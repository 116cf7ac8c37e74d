import type { IncomingMessage } from 'node:http';

/**
 * Protocols that are HTTP again, or carry it. Inside them a client could speak to the backend without the proxy: with its own
 * `x-verified-*` headers. Such an offer may be declined, and the request goes on as it is (RFC 9110, section 7.8).
 */
const carriesHttp = /(?:^|[\s,])(?:h2c?|http|tls)(?:$|[\s,/])/i;

/** Whether a request's wish for another protocol is passed on. One with a body asks in vain: nobody would read the body. */
export function isUpgradeWanted({ headers }: IncomingMessage): boolean {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  return headers.upgrade !== undefined && !hasBody && !carriesHttp.test(headers.upgrade);
}
