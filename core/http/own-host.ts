import { isIPv4 } from 'node:net';

/**
 * Whether a `Host` header names this machine by its loopback, or by the host that is configured. Any page in a browser on this
 * machine can let its own name lead to the loopback (DNS rebinding), but it cannot take one of these names. A request without
 * the header comes from no browser.
 */
export function isOwnHost(header: string | undefined, configured: string): boolean {
  if (header === undefined) return true;
  const host = header.toLowerCase().replace(/:\d+$/, '');
  return host === 'localhost' || host === '[::1]' || isLoopback(host) || host === configured.toLowerCase();
}

function isLoopback(host: string): boolean {
  return isIPv4(host) && host.startsWith('127.');
}
