/** Programs for certificates: an authority for tests, and ACME clients. Unpacked from this system's packages, and not installed. */
import { proxyProgram } from '../kit/packages/proxy-programs.ts';
import { caddyProgram } from '../compose/caddy-program.ts';

export interface AcmePrograms {
  /** A small authority (https://github.com/letsencrypt/pebble), and the DNS server for its challenges. */
  readonly pebble: string;
  readonly dns: string;
  readonly lego: string;
  readonly caddy: string;
}

/** The paths of all programs, or why one is missing. */
export async function acmePrograms(): Promise<AcmePrograms | { readonly missing: string }> {
  const caddy = await caddyProgram();
  if (typeof caddy !== 'string') return caddy;
  const pebble = await proxyProgram('pebble');
  if ('missing' in pebble) return pebble;
  const lego = await proxyProgram('lego');
  if ('missing' in lego) return lego;
  return { caddy, pebble: pebble.path, dns: `${pebble.path}-challtestsrv`, lego: lego.path };
}
