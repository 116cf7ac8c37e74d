/** Selects the requests to log, and reads their trace IDs. */
import type { ProxyErrorCode } from '../contract/proxy-errors.ts';

/** How a request ended. */
export interface Outcome {
  /** `undefined` if there was no answer. */
  readonly status: number | undefined;
  /** The error with which the proxy answered. */
  readonly error: ProxyErrorCode | undefined;
}

const firstServerError = 500;

/** Selects an even share of all requests, and every failed request. */
export class AccessLogSample {
  readonly #percent: number;
  #sum = 0;

  constructor(percent: number) {
    this.#percent = percent;
  }

  /** Whether the next request is logged. */
  includes({ status, error }: Outcome): boolean {
    if (error !== undefined || status === undefined || status >= firstServerError) return true;
    this.#sum += this.#percent;
    if (this.#sum < 100) return false;
    this.#sum -= 100;
    return true;
  }
}

/** The version, the trace, the span that sent the request, and flags (W3C Trace Context). */
const traceParentPattern = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:$|-)/;

/** The trace ID of a request, from its header lines as received. */
export function traceInLines(lines: string): string | undefined {
  return traceOf(/^traceparent: ?(.*?)\r?$/im.exec(lines)?.[1]);
}

/** The trace ID in a `traceparent` header, which backends receive unchanged. */
export function traceOf(traceParent: string | string[] | undefined): string | undefined {
  return typeof traceParent === 'string' ? traceParentPattern.exec(traceParent)?.[1] : undefined;
}
