/** Which headers are whose, told by name. */

/** A header list as it stands on the wire: name, value, name, value. */
export type RawHeaders = readonly string[];

/** Headers for one connection, which no proxy passes on (RFC 9110, section 7.6.1). */
export const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * A header's name as the most forgetful backend sees it: many turn every sign into the same one (CGI, WSGI, PHP), so that
 * `X_Verified.Username` is `x-verified-username` to them.
 */
export function canonicalName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

/** Whether a header speaks with the platform's voice: nobody else may send it to a backend. */
export function isVerified(name: string): boolean {
  return canonicalName(name).startsWith('x-verified-');
}

/** The names that the `Connection` headers of a message declare to be hop by hop. */
export function nominated(headers: RawHeaders): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [name, value] of pairs(headers)) {
    if (name.toLowerCase() !== 'connection') continue;
    for (const token of value.split(',')) names.add(token.trim().toLowerCase());
  }
  return names;
}

/** The headers one by one. */
export function* pairs(headers: RawHeaders): Generator<[name: string, value: string]> {
  for (let i = 0; i + 1 < headers.length; i += 2) yield [headers[i] as string, headers[i + 1] as string];
}
