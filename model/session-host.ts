/** Hosts of sessions: `<label>.<session domain>`. A label encodes a connection token without upper case, which DNS ignores. */

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

const bitsPerCharacter = 5;

const bitsPerByte = 8;

const tokenBytes = 32;

/** Base32 (RFC 4648) of 256 bits, in lower case and without padding. The last character holds one bit, so it is `a` or `q`. */
const labelPattern = /^[a-z2-7]{51}[aq]$/i;

/** The values of a label's characters, by their codes. */
const values = new Uint8Array(128);
for (let i = 0; i < alphabet.length; i += 1) {
  values[alphabet.charCodeAt(i)] = i;
  values[alphabet.toUpperCase().charCodeAt(i)] = i;
}

/** The label of a connection token: 52 letters and digits, below the 63 that DNS allows. */
export function labelOfToken(token: string): string {
  const bytes = Buffer.from(token, 'base64url');
  let label = '';
  let pending = 0;
  let bits = 0;
  for (const byte of bytes) {
    pending = ((pending << bitsPerByte) | byte) & 0xfff;
    bits += bitsPerByte;
    for (; bits >= bitsPerCharacter; bits -= bitsPerCharacter) {
      label += alphabet[(pending >> (bits - bitsPerCharacter)) & 31];
    }
  }
  return bits > 0 ? label + alphabet[(pending << (bitsPerCharacter - bits)) & 31] : label;
}

/** The connection token of a label, `undefined` if the text is not a label. Each token has exactly one label, in upper or lower case. */
export function tokenOfLabel(label: string): string | undefined {
  if (!labelPattern.test(label)) return undefined;
  const bytes = Buffer.allocUnsafe(tokenBytes);
  let pending = 0;
  let bits = 0;
  let length = 0;
  for (let i = 0; i < label.length; i += 1) {
    pending = ((pending << bitsPerCharacter) | (values[label.charCodeAt(i)] ?? 0)) & 0xfff;
    bits += bitsPerCharacter;
    if (bits < bitsPerByte) continue;
    bits -= bitsPerByte;
    bytes[length] = (pending >> bits) & 0xff;
    length += 1;
  }
  return bytes.toString('base64url');
}

/**
 * The connection token in a `Host` header, whose port does not matter; `undefined` if the header does not name the host of a session.
 *
 * @param domain - in lower case
 */
export function tokenOfHost(host: string, domain: string): string | undefined {
  const dotAt = host.indexOf('.');
  if (dotAt < 0 || !isDomain(host.slice(dotAt + 1), domain)) return undefined;
  return tokenOfLabel(host.slice(0, dotAt));
}

/** Whether a host is the domain, possibly with the dot of a full name, and a port. */
function isDomain(host: string, domain: string): boolean {
  return host.slice(0, domain.length).toLowerCase() === domain && /^\.?(?::\d*)?$/.test(host.slice(domain.length));
}
