import { proxyErrors } from '../contract/proxy-errors.ts';
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';

/** The proxy has to answer by itself. Carries a code of the proxy's catalogue; never a token. */
export class ProxyFailure extends Error {
  override readonly name = 'ProxyFailure';
  readonly code: ProxyErrorCode;

  constructor(code: ProxyErrorCode, options?: ErrorOptions) {
    super(proxyErrors[code].message, options);
    this.code = code;
  }
}

/** The backend has ended, or is ending and will never be ready. */
export function goneFailure(wasReady: boolean, options?: ErrorOptions): ProxyFailure {
  return new ProxyFailure(wasReady ? 'gone' : 'not-started', options);
}

/** What went wrong, as the proxy's own error. What nobody foresaw is not the session's fault: `unavailable`. */
export function asProxyFailure(error: unknown): ProxyFailure {
  return error instanceof ProxyFailure ? error : new ProxyFailure('unavailable', { cause: error });
}
