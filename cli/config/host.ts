/** The address of a platform. */
import { isLoopback } from '../../client/tools/registry-access.ts';
import { usageError } from '../errors.ts';

/** The address of the API after `npm start`. */
export const defaultHost = 'http://127.0.0.1:7100';

/**
 * Parses the address of an API that a user has typed. The default scheme is `https:`, and `http:` for this machine. Throws a usage
 * error that names the option or variable `source`.
 */
export function hostUrl(text: string, source: string): string {
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
    ? text
    : `${isLoopback(withoutPort(text)) ? 'http' : 'https'}://${text}`;
  let url: URL;
  try {
    url = new URL(full);
  } catch {
    throw usageError(`${source}: Not an address, use one such as https://berth.example`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw usageError(`${source}: Use an address with https: or http:`);
  if (url.username || url.password) throw usageError(`${source}: Use an address without a user and a password`);
  if (url.search || url.hash) throw usageError(`${source}: Use an address without ? and #`);
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** Whether requests to an address are encrypted or stay on this machine. */
export function isPrivate(host: string): boolean {
  const { protocol, hostname } = new URL(host);
  return protocol === 'https:' || isLoopback(hostname);
}

function withoutPort(text: string): string {
  return text.replace(/\/.*$/, '').replace(/:\d+$/, '');
}
