import type { IncomingMessage } from 'node:http';
import { RegistryError } from '../errors.ts';

/** A host name, IPv4 address or bracketed IPv6 address, with or without a port: nothing that could end a quoted string. */
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[a-f0-9:.]{2,45}\])(?::[0-9]{1,5})?$/i;

/**
 * Where clients ask for tokens, as an absolute URL. Without a public URL the Host header tells: it can only mislead the
 * client that sent it. `X-Forwarded-*` are not believed. Throws `host-invalid`.
 */
export function realmOf(publicUrl: string | undefined, request: IncomingMessage): string {
  if (publicUrl !== undefined) return new URL('/token', publicUrl).href;
  const { host } = request.headers;
  if (host === undefined || !hostPattern.test(host)) throw new RegistryError('host-invalid');
  const scheme = 'encrypted' in request.socket ? 'https' : 'http';
  return `${scheme}://${host}/token`;
}
